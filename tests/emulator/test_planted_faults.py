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
from cutesmith_evaluator.worker.validate import validate
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
    finding = found(planted, tmp_path, torch.randn(planted.length))
    assert planted.kind is not None
    assert finding.kind in planted.kind.split(" or "), finding
    assert finding.line == planted.line, finding
    if planted.line:
        assert f"planted_cute.py:{planted.line}" in finding.message
        assert "body_kernel" in finding.message or finding.kind == "unwritten-output"
        assert "thread (" in finding.message or finding.kind == "unwritten-output"


def test_an_instruction_that_is_not_known_is_named(tmp_path: Path) -> None:
    body = """
from cutlass._mlir.dialects import llvm
gY[i] = gX[i]
llvm.inline_asm(None, [], "pmevent 3;", "", has_side_effects=True)
"""
    finding = found(Planted("an unknown instruction", body), tmp_path, torch.randn(128))
    assert finding.kind == "not-emulated"
    assert finding.severity == "information"
    assert "pmevent" in finding.message


def test_a_kernel_that_prints_is_judged_and_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = "gY[i] = gX[i] + gX[i]\nif tidx == 0:\n    cute.printf('thread {} has {}', tidx, gX[i])"
    x = torch.randn(256)
    result = candidate(Planted("printf", body), tmp_path).forward(torch.nn.Identity(), x)
    assert isinstance(result, torch.Tensor)
    torch.testing.assert_close(result, 2 * x)
    assert "has" not in capfd.readouterr().out


def test_too_many_threads_are_named(tmp_path: Path) -> None:
    finding = found(
        Planted("wide", "if i < cute.size(gX):\n    gY[i] = gX[i]", threads=2048), tmp_path, torch.randn(128)
    )
    assert finding.kind == "launch-limit", finding
    assert "2048" in finding.message


MODEL_NEW = """
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack
from torch import nn


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    value = x[tidx]
    if value < 0.0:
        value = cutlass.Float32(0.0)
    y[tidx] = value


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor):
    relu_kernel(x, y).launch(grid=[1, 1, 1], block=[256, 1, 1])


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        CALL
        return y
"""
REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(256)]
"""
COMPILED = "cute.compile(relu, from_dlpack(x), from_dlpack(y))(from_dlpack(x), from_dlpack(y))"


DIRECT = "relu(from_dlpack(x), from_dlpack(y))"


@pytest.mark.parametrize(("call", "ok"), [(COMPILED, True), (DIRECT, True), ("torch.cuda.mem_get_info()", None)])
def test_a_model_new_runs_through_the_dsl_and_is_not_judged_past_it(call: str, ok: bool | None, tmp_path: Path):
    (tmp_path / "task.py").write_text(REFERENCE)
    (tmp_path / "new.py").write_text(MODEL_NEW.replace("CALL", call))
    task = {"file": str(tmp_path / "task.py"), "qualname": "Model"}
    verdict = validate({"task": task, "candidate": str(tmp_path / "new.py"), "device": "emulated"}, lambda _: None)
    assert verdict.ok is ok, verdict.findings
    assert {finding.severity for finding in verdict.findings} <= {"warning", "information"}
    assert ok or [finding.kind for finding in verdict.findings] == ["not-emulated"]
