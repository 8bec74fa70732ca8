"""Attention keeps its precision on the device in every schedule, and is timed beside eager and torch.compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from gpu_kernels import drafts_of, write
from suite import ATTENTION, Case, attention_cases

pytestmark = pytest.mark.gpu

ODD = (  # class, dtype, queries, keys: tails, heads of any size, few queries, keys that few queries share
    ("ScaledDotProductAttention", "float16", (2, 3, 77, 40), (2, 3, 131, 40)),
    ("CausalAttention", "bfloat16", (1, 6, 333, 96), (1, 2, 333, 96)),
    ("CausalAttention", "float16", (2, 2, 300, 20), (2, 2, 300, 20)),
    ("WrittenAttention", "bfloat16", (3, 8, 1, 128), (3, 1, 1000, 128)),
    ("WrittenCausalAttention", "float16", (1, 2, 129, 256), (1, 2, 129, 256)),
    ("ScaledDotProductAttention", "float32", (2, 3, 77, 40), (2, 3, 131, 40)),
    ("CausalAttention", "float32", (1, 4, 333, 96), (1, 2, 333, 96)),
    ("WrittenCausalAttention", "float32", (1, 2, 129, 256), (1, 2, 129, 256)),
    ("ScaledDotProductAttention", "float32", (1, 2, 65, 12), (1, 2, 70, 12)),
    ("ScaledDotProductAttention", "float32", (1, 2, 200, 512), (1, 2, 200, 512)),
    ("CausalAttention", "float32", (1, 4, 600, 260), (1, 2, 600, 260)),
)


def case_of(name: str, dtype: str, queries: tuple[int, ...], keys: tuple[int, ...]) -> Case:
    constants = {"QUERIES": str(queries), "KEYS": str(keys), "DTYPE": f"torch.{dtype}", "DRAWN": "torch.randn"}
    return Case(f"{name} {dtype} {queries}", ATTENTION, name, "product", constants)


@pytest.mark.parametrize("form", ODD, ids=str)
def test_every_schedule_keeps_its_precision(worker: Worker, form: tuple, tmp_path: Path) -> None:
    case = case_of(*form)
    task = Task(str(write(case, tmp_path)), case.qualname)
    for number, draft in enumerate(drafts_of(worker, task)):
        candidate = tmp_path / f"draft{number}_cute.py"
        candidate.write_text(draft.source)
        validation = worker.validate(task, candidate)
        assert validation.ok is True, f"{case.name}, {draft.schedule}: {validation.findings}"
        assert validation.precision == "kept", f"{case.name}, {draft.schedule}: {validation.error}"


@pytest.mark.parametrize("case", attention_cases(), ids=lambda case: case.name)
def test_models_attention_keeps_its_precision(worker: Worker, case: Case, tmp_path: Path) -> None:
    """Prints what it takes beside eager and torch.compile."""
    task = Task(str(write(case, tmp_path)), case.qualname)
    candidate = tmp_path / "draft_cute.py"
    candidate.write_text(drafts_of(worker, task)[0].source)
    validation = worker.validate(task, candidate, quick=True)
    timing = worker.time(task, candidate, quick=True)
    arms = ", ".join(f"{arm.name} {arm.median_ms:.3f}" for arm in timing.arms)
    print(f"{case.name}: {validation.precision}, {arms} ms, {validation.error}")
    assert validation.ok is True, validation.findings
    assert validation.precision == "kept", validation.error
