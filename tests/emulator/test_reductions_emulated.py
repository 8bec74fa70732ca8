"""Kernels for reductions over any dimension and for norms of channels, validated on the emulated device."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from suite import Case, reducing_cases

CASES = {case.qualname: case for case in reducing_cases()}
PLANES = {"BATCH": "2", "BATCHED": "3", "FEATURES": "16", "SIDE": "6"}  # 36 elements: rows of channels by fours
BFLOAT = {"DTYPE": "torch.bfloat16"}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def check(worker: Worker, case: Case, folder: Path, drafts: slice) -> None:
    """These drafts are right, and no less precise than the module."""
    task = Task(str(case.write(folder)), case.qualname)
    inspection = worker.inspect(task)
    proposal = propose(inspection, Target(case.qualname, Path(task.file), "sm_90a"))
    assert inspection.graph is not None
    assert proposal.drafts[drafts], proposal.findings
    for number, draft in enumerate(proposal.drafts[drafts]):
        candidate = folder / f"draft{number}" / f"{case.qualname.lower()}_cute.py"
        candidate.parent.mkdir()
        candidate.write_text(draft.source)
        dims = inspection.graph.dynamic_dims
        verdict = worker.validate(task, candidate, device="emulated", dynamic_dims=dims, quick=True)
        assert (verdict.ok, verdict.precision) == (True, "kept"), (draft.schedule, verdict.findings)


@pytest.mark.parametrize(
    ("name", "constants", "drafts"),
    [
        ("BatchNorm", PLANES, slice(1)),
        ("InstanceNorm", PLANES, slice(1)),
        ("GroupNorm", PLANES | BFLOAT, slice(1)),
        ("ChannelRMSNorm", PLANES, slice(0, None, 3)),
        ("ChannelRMSNorm", PLANES | BFLOAT | {"FEATURES": "67", "SIDE": "5"}, slice(1)),
        ("Mean", {"BATCH": "2", "LENGTH": "70", "WIDTH": "12"} | BFLOAT, slice(1)),
        ("Max", {"BATCH": "3", "LENGTH": "67", "WIDTH": "35"}, slice(1, 2)),
        ("Sum", {"BATCH": "264", "LENGTH": "5", "WIDTH": "257"}, slice(1, 2)),  # rows for wide blocks
        ("Argmax", {"BATCH": "2", "LENGTH": "40", "WIDTH": "16"}, slice(1, 6, 4)),
        ("Argmin", {"BATCH": "2", "LENGTH": "131", "WIDTH": "7"}, slice(1)),
    ],
)
def test_rows_anywhere(worker: Worker, name: str, constants: dict[str, str], drafts: slice, tmp_path: Path) -> None:
    check(worker, replace(CASES[name], constants=constants), tmp_path, drafts)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("LayerNorm", {"NORMALIZED": "(2, 163, 101)"}),
        ("FrobeniusNorm", {"BATCH": "2", "FEATURES": "8", "SIDE": "48"} | BFLOAT),
    ],
)
def test_many_blocks_share_a_row(worker: Worker, name: str, constants: dict[str, str], tmp_path: Path) -> None:
    case = replace(CASES[name], constants=constants)
    check(worker, case, tmp_path, slice(1))


def test_a_block_takes_mean_and_variance_in_one_reading(worker: Worker, tmp_path: Path) -> None:
    case = replace(CASES["LayerNorm"], constants={"NORMALIZED": "(2, 163, 101)"})
    check(worker, case, tmp_path, slice(4, 5))


@pytest.mark.parametrize(
    ("name", "columns", "drafts"),
    [
        ("CumulativeSum", "2564", slice(0, 6, 4)),
        ("CumulativeSum", "1000", slice(1)),
        ("CumulativeProduct", "2564", slice(1)),
        ("ReverseCumulativeSum", "1027", slice(1)),
        ("ExclusiveCumulativeSum", "388", slice(0, 3)),
        ("MaskedCumulativeSum", "512", slice(1)),
    ],
)
def test_scans(worker: Worker, name: str, columns: str, drafts: slice, tmp_path: Path) -> None:
    check(worker, replace(CASES[name], constants={"ROWS": "5", "COLUMNS": columns}), tmp_path, drafts)


@pytest.mark.parametrize(
    ("name", "constants", "drafts"),
    [
        ("MaxPool1d", {"BATCH_1D": "1", "LENGTH": "40"}, slice(1)),
        ("MaxPool2d", {"PLANES": "(2, 3, 9, 17)"} | BFLOAT, slice(1)),
        ("MaxPool3d", {"VOLUMES": "(1, 2, 7, 9, 9)"}, slice(1)),
        ("AvgPool1d", {"BATCH_1D": "1", "LENGTH": "35"}, slice(0, None, 5)),
        ("AvgPool2d", {"AVERAGED_PLANES": "(1, 2, 24, 36)"}, slice(1)),
        ("AvgPool3d", {"AVERAGED_VOLUMES": "(1, 2, 5, 7, 12)"}, slice(1)),
        ("DepthwiseAsymmetric", {"ASYMMETRIC": "(1, 3, 12, 19)"}, slice(1)),
        ("DepthwiseColumn", {"FEW_CHANNELS": "(1, 4, 11, 8)"} | BFLOAT, slice(1)),
    ],
)
def test_windows(worker: Worker, name: str, constants: dict[str, str], drafts: slice, tmp_path: Path) -> None:
    check(worker, replace(CASES[name], constants=constants), tmp_path, drafts)


@pytest.mark.parametrize(
    ("name", "constants", "drafts"),
    [
        ("CrossEntropyLoss", {"ROWS": "70", "CLASSES": "300"}, slice(1)),
        ("CrossEntropyLoss", {"ROWS": "9", "CLASSES": "1030"} | BFLOAT, slice(1)),
        ("TripletMarginLoss", {"ROWS": "19", "EMBEDDING": "1024"}, slice(1)),
    ],
)
def test_a_loss_of_rows(worker: Worker, name: str, constants: dict[str, str], drafts: slice, tmp_path: Path) -> None:
    check(worker, replace(CASES[name], constants=constants), tmp_path, drafts)
