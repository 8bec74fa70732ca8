"""The worker validates kernels of the recipes without a GPU, on the emulated device: real processes, real kernels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Draft, Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Inspection, Task, Validation
from cutesmith_evaluator.worker.emulated_sizes import smaller_size
from suite import EXAMPLE_MODULES, Case, Example, kernelbench_cases

MODULES = Path(__file__).parents[1] / "agent" / "recipes" / "modules.py"
ODD = {"ROWS": "5", "COLUMNS": "259", "FEATURES": "259", "CLASSES": "259"}
ODD_HEADS = {"BATCH": "1", "HEADS": "3", "LENGTH": "13", "HEAD_DIM": "34"}
EVEN = {"ROWS": "8", "COLUMNS": "512", "FEATURES": "512", "CLASSES": "512"}
EVEN_HEADS = {"BATCH": "2", "HEADS": "2", "LENGTH": "16", "HEAD_DIM": "64"}
BIG = {"ROWS": "8192", "FEATURES": "1024", "CLASSES": "1024"}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def drafts_of(worker: Worker, case: Case, folder: Path) -> tuple[Task, Inspection, tuple[Draft, ...]]:
    task = Task(str(case.write(folder)), case.qualname)
    inspection = worker.inspect(task)
    assert inspection.graph is not None, inspection.findings
    proposal = propose(inspection, Target(case.qualname, Path(task.file), "sm_90a"))
    assert proposal.drafts, proposal.findings
    return task, inspection, proposal.drafts


def validated(
    worker: Worker, case: Case, folder: Path, *, break_by: tuple[str, str] | None = None, quick: bool = False
) -> Validation:
    """The first draft's verdict; `break_by`: words of the draft, and what they become first."""
    task, inspection, drafts = drafts_of(worker, case, folder)
    assert inspection.graph is not None
    source = drafts[0].source
    if break_by:
        assert break_by[0] in source
        source = source.replace(*break_by)
    candidate = folder / f"{case.qualname.lower()}_cute.py"
    candidate.write_text(source)
    dims = inspection.graph.dynamic_dims
    return worker.validate(task, candidate, device="emulated", dynamic_dims=dims, quick=quick)


def test_a_cluster_of_blocks_shares_a_row(worker: Worker, tmp_path: Path) -> None:
    softmax = next(case for case in kernelbench_cases() if case.name == "23 Softmax")
    case = replace(softmax, constants={"ROWS": "9", "COLUMNS": "70004"})  # the last block's part is shorter
    task, _, drafts = drafts_of(worker, case, tmp_path)
    clustered = next(draft for draft in drafts if draft.schedule.get("cluster"))
    candidate = tmp_path / "softmax_cute.py"
    candidate.write_text(clustered.source)
    verdict = worker.validate(task, candidate, device="emulated", quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings


SCHEDULES = {
    "pointwise": ("new_gelu", ODD, "steps"),
    "rows": ("rms_norm", EVEN, "preload"),
    "one row": ("focal_loss", {"ROWS": "64", "CLASSES": "1024"}, "blocks"),
}


@pytest.mark.parametrize(("stem", "sizes", "name"), SCHEDULES.values(), ids=SCHEDULES)
def test_every_schedule_is_right(worker: Worker, tmp_path: Path, stem: str, sizes: dict[str, str], name: str) -> None:
    example = next(example for example in EXAMPLE_MODULES if example.stem == stem)
    task, _, drafts = drafts_of(worker, example.case(stem, sizes), tmp_path)
    assert any(name in draft.schedule for draft in drafts), "a family that has this parameter"
    for number, draft in enumerate(drafts):
        candidate = tmp_path / f"draft{number}" / f"{example.qualname.lower()}_cute.py"
        candidate.parent.mkdir()
        candidate.write_text(draft.source)
        verdict = worker.validate(task, candidate, device="emulated", quick=True)
        assert (verdict.ok, verdict.precision) == (True, "kept"), (draft.schedule, verdict.findings)


@pytest.mark.parametrize("example", EXAMPLE_MODULES, ids=lambda example: example.stem)
def test_every_example_is_right_on_the_emulated_device(worker: Worker, example: Example, tmp_path: Path) -> None:
    verdict = validated(worker, example.case(example.stem, ODD | ODD_HEADS), tmp_path)
    assert verdict.ok is True, verdict.findings
    assert verdict.device == "emulated"
    assert verdict.precision == "kept"
    assert verdict.checks[0].startswith("emulated device, sm_90a")


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16"])
@pytest.mark.parametrize("example", EXAMPLE_MODULES, ids=lambda example: example.stem)
def test_every_example_in_half_precision(worker: Worker, example: Example, dtype: str, tmp_path: Path) -> None:
    """Sizes that 16-byte accesses fit."""
    verdict = validated(worker, example.case(example.stem, EVEN | EVEN_HEADS | {"DTYPE": dtype}), tmp_path, quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings


@pytest.mark.parametrize("case", kernelbench_cases(), ids=lambda case: case.name)
def test_every_benchmark_task(worker: Worker, case: Case, tmp_path: Path) -> None:
    verdict = validated(worker, replace(case, constants=ODD), tmp_path, quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings


def test_rows_too_long_for_one_block(worker: Worker, tmp_path: Path) -> None:
    case = next(case for case in kernelbench_cases() if case.name == "23 Softmax")
    verdict = validated(worker, replace(case, constants={"ROWS": "2", "COLUMNS": "196608"}), tmp_path, quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings


def test_the_length_of_a_row_is_not_cut(worker: Worker, tmp_path: Path) -> None:
    """Rows alone do not bring this task down to the usual size, and the kernel is for rows of this length."""
    big = {"ROWS": "8192", "FEATURES": "11008"}
    verdict = validated(worker, EXAMPLE_MODULES[1].case("rms_norm", big), tmp_path, quick=True)
    assert verdict.ok is True, verdict.findings
    assert "dimension 0 of input 0: 16 instead of 8192" in verdict.checks[0]


def test_large_tasks_are_cut_and_say_so(worker: Worker, tmp_path: Path) -> None:
    verdict = validated(worker, EXAMPLE_MODULES[1].case("rms_norm", BIG), tmp_path)
    assert verdict.ok is True, verdict.findings
    assert "dimension 0 of input 0: 64 instead of 8192" in verdict.checks[0]


def test_a_wrong_kernel_is_wrong(worker: Worker, tmp_path: Path) -> None:
    """GELU's constant a little off."""
    verdict = validated(worker, EXAMPLE_MODULES[0].case("new_gelu", ODD), tmp_path, break_by=("0.044715", "0.0447"))
    assert verdict.ok is False
    assert "wrong-values" in {finding.kind for finding in verdict.findings} or verdict.precision == "lowered"


def test_auto_takes_the_emulated_device_where_there_is_no_other(worker: Worker, tmp_path: Path) -> None:
    case = EXAMPLE_MODULES[0].case("new_gelu", ODD)
    task, inspection, (draft, *_) = drafts_of(worker, case, tmp_path)
    candidate = tmp_path / "newgelu_cute.py"
    candidate.write_text(draft.source)
    found = inspection.environment.device
    assert worker.validate(task, candidate, quick=True).device == ("emulated" if found == "none" else found)
    nowhere = worker.validate(task, candidate, quick=True, device="none")
    assert (nowhere.ok, nowhere.device) == (None, "none")


# Kinds of kernels of the recipes that are in no example and no benchmark task.
KINDS = (
    *("Arithmetic", "Powers", "PerChannel", "Transposed", "Joined", "JoinedUnequal", "Interleaved"),
    *("Best", "Worst", "Product", "UnitLength", "Spread", "Configured"),
)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_kernel(worker: Worker, name: str, tmp_path: Path) -> None:
    shape = {"PerChannel": "((2, 16, 3, 5),)", "Transposed": "((2, 16, 64),)", "Arithmetic": "((5, 256),) * 2"}
    case = Case(name, MODULES, name, "pointwise", {f"SHAPES[{name!r}]": shape.get(name, "((5, 256),)")})
    verdict = validated(worker, case, tmp_path, quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings


@pytest.mark.parametrize(
    ("size", "elements", "smaller"),
    [(8192, 8192 * 1024, 64), (8191, 8191 * 1024, 63), (8, 8 * 393216, 2), (1, 1 << 22, 1), (64, 1 << 10, 64)],
)
def test_sizes_keep_their_divisibility(size: int, elements: int, smaller: int) -> None:
    assert smaller_size(size, elements) == smaller
