"""Norms, reductions over any dimension, scans, pooling and losses: every schedule, proved on the device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from gpu_kernels import drafts_of, write
from suite import Case, reducing_cases

pytestmark = pytest.mark.gpu

NORMS = {"BATCH": "4", "BATCHED": "8", "FEATURES": "16", "GROUPS": "4", "SIDE": "96", "NORMALIZED": "(4, 96, 100)"}
ROWS = {"ROWS": "70", "COLUMNS": "33001", "CLASSES": "1000", "DIVERGENCE": "512", "EMBEDDING": "768"}
WINDOWS = {
    "BATCH_1D": "2",
    "LENGTH": "1030",
    "PLANES": "(2, 8, 65, 129)",
    "VOLUMES": "(2, 4, 19, 21, 24)",
    "AVERAGED_PLANES": "(2, 3, 90, 140)",
    "AVERAGED_VOLUMES": "(2, 3, 17, 19, 24)",
    "SQUARE": "(2, 8, 65, 131)",
    "FEW_CHANNELS": "(3, 8, 70, 33)",
    "WIDE": "(2, 4, 33, 260)",
    "ASYMMETRIC": "(2, 8, 40, 77)",
}
REDUCED = {"BATCH": "5", "LENGTH": "515", "WIDTH": "131"}  # of tasks 47 to 53
DTYPES = {"fp32": "torch.float32", "bf16": "torch.bfloat16"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", reducing_cases(), ids=lambda case: case.name)
def test_every_schedule_keeps_its_precision(worker: Worker, case: Case, dtype: str, tmp_path: Path) -> None:
    sizes = REDUCED if case.file.stem == "reductions" else NORMS | ROWS | WINDOWS
    small = replace(case, constants=sizes | {"DTYPE": DTYPES[dtype]})
    task = Task(str(write(small, tmp_path)), case.qualname)
    for number, draft in enumerate(drafts_of(worker, task)):
        candidate = tmp_path / f"draft{number}" / f"{case.qualname.lower()}_cute.py"
        candidate.parent.mkdir()
        candidate.write_text(draft.source)
        verdict = worker.validate(task, candidate, quick=True)
        assert (verdict.ok, verdict.precision) == (True, "kept"), (draft.title, draft.schedule, verdict.findings)
