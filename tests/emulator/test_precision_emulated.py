"""Precision classes of fp32 products on tensor cores, whose emulated sums are the H200's bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import run_checks
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from split_products import (
    BF16,
    BF16_SPLIT,
    DRAWS,
    FP16,
    FP16_HALF_SPLIT,
    FP16_SPLIT,
    FP16_UNPROMOTED,
    QUALNAME,
    TF32,
    Arithmetic,
    task,
)

DEPTH = 1024
CLASSES = [
    (TF32, "normal", "lowered"),
    (TF32, "wide range", "lowered"),
    (FP16, "uniform", "lowered"),
    (FP16, "wide range", "wrong"),  # beyond fp16's range: infinite
    (BF16, "normal", "lowered"),
    (BF16, "uniform", "lowered"),
    (BF16, "wide range", "lowered"),
    (FP16_HALF_SPLIT, "uniform", "lowered"),
    (FP16_UNPROMOTED, "normal", "lowered"),
    (FP16_UNPROMOTED, "uniform", "lowered"),
    (FP16_SPLIT, "normal", "kept"),
    (FP16_SPLIT, "uniform", "kept"),
    (BF16_SPLIT, "uniform", "kept"),
    (BF16_SPLIT, "wide range", "kept"),
]


@pytest.fixture(scope="module", autouse=True)
def loaded_dsl() -> None:
    dsl.load()


def class_of(arithmetic: Arithmetic, draw: str, folder: Path) -> str:
    file, candidate = folder / f"{folder.name}_product.py", folder / "product_cute.py"
    file.write_text(task(DRAWS[draw], DEPTH))
    candidate.write_text(arithmetic.candidate(DEPTH))
    reference = load_reference(Task(str(file), QUALNAME))
    emulated = EmulatedCandidate(load_candidate(candidate, reference), "sm_90a")
    outcome = run_checks(
        reference, emulated, torch.device("cpu"), Plan(quick=True), lambda _: None, enough=lambda: True
    )
    measured = outcome.by_check.get("the task's inputs, seed 0")
    if measured is None:
        assert {finding.kind for finding in outcome.findings} == {"wrong-values"}, outcome.findings
        return "wrong"
    return measured.precision


@pytest.mark.parametrize(("arithmetic", "draw", "expected"), CLASSES, ids=lambda each: getattr(each, "name", each))
def test_classes_of_products(arithmetic: Arithmetic, draw: str, expected: str, tmp_path: Path):
    assert class_of(arithmetic, draw, tmp_path) == expected
