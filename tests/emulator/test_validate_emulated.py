"""The worker validates kernels of the recipes without a GPU, on the emulated device: real processes, real kernels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task, Validation
from cutesmith_evaluator.worker.emulated_inputs import smaller_size
from suite import EXAMPLE_MODULES, Example

ODD = {"ROWS": "5", "COLUMNS": "259", "FEATURES": "259", "CLASSES": "259"}
ODD_HEADS = {"BATCH": "1", "HEADS": "3", "LENGTH": "13", "HEAD_DIM": "34"}
BIG = {"ROWS": "8192", "FEATURES": "1024", "CLASSES": "1024"}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def validated(
    worker: Worker, example: Example, folder: Path, constants: dict[str, str], break_by: tuple[str, str] = ("", "")
) -> Validation:
    """The first draft's verdict; `break_by`: words of the draft, and what they become first."""
    case = example.case(example.stem, constants)
    task = Task(str(case.write(folder)), case.qualname)
    inspection = worker.inspect(task)
    assert inspection.graph is not None, inspection.findings
    proposal = propose(inspection, Target(case.qualname, Path(task.file), "sm_90a"))
    assert proposal.drafts, proposal.findings
    candidate = folder / f"{case.qualname.lower()}_cute.py"
    source = proposal.drafts[0].source
    assert break_by[0] in source
    candidate.write_text(source.replace(*break_by) if break_by[0] else source)
    return worker.validate(task, candidate, device="emulated", dynamic_dims=inspection.graph.dynamic_dims)


@pytest.mark.parametrize("example", EXAMPLE_MODULES, ids=lambda example: example.stem)
def test_every_example_is_right_on_the_emulated_device(worker: Worker, example: Example, tmp_path: Path) -> None:
    verdict = validated(worker, example, tmp_path, ODD | ODD_HEADS)
    assert verdict.ok is True, verdict.findings
    assert verdict.device == "emulated"
    assert verdict.precision == "kept"
    assert verdict.checks[0].startswith("emulated device, sm_90a")


def test_large_tasks_are_cut_and_say_so(worker: Worker, tmp_path: Path) -> None:
    verdict = validated(worker, EXAMPLE_MODULES[1], tmp_path, BIG)
    assert verdict.ok is True, verdict.findings
    assert "dimension 0 of input 0: 64 instead of 8192" in verdict.checks[0]


def test_a_wrong_kernel_is_wrong(worker: Worker, tmp_path: Path) -> None:
    """GELU's constant a little off."""
    verdict = validated(worker, EXAMPLE_MODULES[0], tmp_path, ODD, ("0.044715", "0.0447"))
    assert verdict.ok is False
    assert "wrong-values" in {finding.kind for finding in verdict.findings} or verdict.precision == "lowered"


def test_auto_is_the_emulated_device_without_cuda(worker: Worker, tmp_path: Path) -> None:
    case = EXAMPLE_MODULES[0].case("new_gelu", ODD)
    task = Task(str(case.write(tmp_path)), case.qualname)
    inspection = worker.inspect(task)
    draft = propose(inspection, Target(case.qualname, Path(task.file), "sm_90a")).drafts[0]
    candidate = tmp_path / "newgelu_cute.py"
    candidate.write_text(draft.source)
    expected = "emulated" if inspection.environment.device == "none" else inspection.environment.device
    assert worker.validate(task, candidate, quick=True).device == expected
    nowhere = worker.validate(task, candidate, quick=True, device="none")
    assert (nowhere.ok, nowhere.device) == (None, "none")


@pytest.mark.parametrize(
    ("size", "elements", "smaller"),
    [(8192, 8192 * 1024, 64), (8191, 8191 * 1024, 63), (8, 8 * 393216, 2), (1, 1 << 22, 1), (64, 1 << 10, 64)],
)
def test_sizes_keep_their_divisibility(size: int, elements: int, smaller: int) -> None:
    assert smaller_size(size, elements) == smaller
