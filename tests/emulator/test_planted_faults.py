"""Right kernels run without a finding; each planted fault is found on its line. Real DSL, host code and PTX."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.failures import TaskError
from emulated_kernels import FAULTS, RIGHT, Planted


@pytest.fixture(scope="module", autouse=True)
def loaded_dsl() -> None:
    dsl.load()


def candidate(planted: Planted, folder: Path) -> EmulatedCandidate:
    path = folder / "planted_cute.py"
    path.write_text(planted.source)
    return EmulatedCandidate(load_candidate(path), "sm_90a")


def found(planted: Planted, folder: Path, x: torch.Tensor) -> Finding:
    with pytest.raises(TaskError) as caught:
        candidate(planted, folder).forward(torch.nn.Identity(), x)
    return caught.value.finding


@pytest.mark.parametrize("planted", RIGHT, ids=lambda planted: planted.name)
def test_a_right_kernel_has_no_finding(planted: Planted, tmp_path: Path) -> None:
    x = torch.randn(1000 if planted.name == "pointwise" else 1024)
    right = candidate(planted, tmp_path)
    assert right.supports(torch.nn.Identity(), x)
    result = right.forward(torch.nn.Identity(), x)
    assert isinstance(result, torch.Tensor)
    torch.testing.assert_close(result, 2 * x)


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.name)
def test_a_fault_is_named_with_its_line(planted: Planted, tmp_path: Path) -> None:
    finding = found(planted, tmp_path, torch.randn(1000))
    assert planted.kind is not None
    assert finding.kind in planted.kind.split(" or "), finding
    assert finding.line == planted.line, finding
    if planted.line:
        assert f"planted_cute.py:{planted.line}" in finding.message
        assert "body_kernel" in finding.message
        assert "thread (" in finding.message


def test_an_instruction_that_is_not_known_is_named(tmp_path: Path) -> None:
    body = "gY[i] = gX[i]\nif tidx == 0:\n    cute.printf(tidx)  # HERE"
    finding = found(Planted("printf", body), tmp_path, torch.randn(128))
    assert finding.kind == "not-emulated"
    assert finding.severity == "information"
    assert "call" in finding.message or "function" in finding.message


def test_too_many_threads_are_named(tmp_path: Path) -> None:
    finding = found(
        Planted("wide", "if i < cute.size(gX):\n    gY[i] = gX[i]", threads=2048), tmp_path, torch.randn(128)
    )
    assert finding.kind == "launch-limit", finding
    assert "2048" in finding.message
