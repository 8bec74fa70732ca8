"""Every benchmark task and every example gets a kernel that the worker proves on the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from gpu_kernels import drafts_of, write
from suite import DTYPES, EXAMPLE_MODULES, Case, Example, kernelbench_cases

pytestmark = pytest.mark.gpu

EVEN = {"ROWS": "64", "COLUMNS": "2048", "FEATURES": "2048", "CLASSES": "2048"}
EVEN_HEADS = {"BATCH": "2", "HEADS": "4", "LENGTH": "128", "HEAD_DIM": "64"}
ODD = {"ROWS": "37", "COLUMNS": "1027", "FEATURES": "1027", "CLASSES": "1027"}  # rows start unaligned, tails of 3
ODD_HEADS = {"BATCH": "1", "HEADS": "3", "LENGTH": "101", "HEAD_DIM": "34"}
SIZES = {"even": EVEN | EVEN_HEADS, "odd": ODD | ODD_HEADS}
ALL_DTYPES = DTYPES | {"fp16": "torch.float16"}
LONG_ROWS = {"ROWS": "8", "COLUMNS": "393216"}

every_example = pytest.mark.parametrize("example", EXAMPLE_MODULES, ids=lambda example: example.stem)


def prove(worker: Worker, case: Case, folder: Path, *, drafts: int | None = 1) -> None:
    """The first `drafts` drafts (None: all) compile and validate with precision kept."""
    task = Task(str(write(case, folder)), case.qualname)
    for number, draft in enumerate(drafts_of(worker, task)[:drafts]):
        candidate = folder / f"draft{number}" / f"{case.qualname.lower()}_cute.py"
        candidate.parent.mkdir()
        candidate.write_text(draft.source)
        validation = worker.validate(task, candidate)
        assert validation.ok is True, f"{case.name}, {draft.title}: {validation.findings}"
        assert validation.precision == "kept", f"{case.name}, {draft.title}: {validation.error}"


@pytest.mark.parametrize("size", ["even", "odd"])
@pytest.mark.parametrize("case", kernelbench_cases(), ids=lambda case: case.name)
def test_tasks_keep_their_precision(worker: Worker, case: Case, size: str, tmp_path: Path) -> None:
    prove(worker, Case(case.name, case.file, case.qualname, case.kind, SIZES[size]), tmp_path)


@pytest.mark.parametrize("name", ["23 Softmax", "24 LogSoftmax"])
def test_rows_too_long_for_one_block_keep_their_precision(worker: Worker, name: str, tmp_path: Path) -> None:
    case = next(case for case in kernelbench_cases() if case.name == name)
    prove(worker, Case(case.name, case.file, case.qualname, case.kind, LONG_ROWS), tmp_path, drafts=None)


@every_example
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_examples_keep_their_precision(worker: Worker, example: Example, dtype: str, size: str, tmp_path: Path) -> None:
    prove(worker, example.case(example.stem, SIZES[size] | {"DTYPE": ALL_DTYPES[dtype]}), tmp_path)


@pytest.mark.parametrize("stem", ["new_gelu", "rms_norm"])
def test_every_schedule_keeps_its_precision(worker: Worker, stem: str, tmp_path: Path) -> None:
    example = next(example for example in EXAMPLE_MODULES if example.stem == stem)
    prove(worker, example.case(stem, SIZES["odd"]), tmp_path, drafts=None)
