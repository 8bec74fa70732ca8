"""Each family of kernels over thirty shapes and more, in three dtypes, on the emulated device.

A few of them here; all with `make sizes` (an hour or two).
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from size_cases import DTYPES, FAMILIES, SizeCase, size_cases

ALL = os.environ.get("CUTESMITH_SIZES") == "all"
NOTHING_TO_GAIN = ("single element", "single elements", "same everywhere")


def chosen() -> list[SizeCase]:
    """All, or the small ones of a few families: another dtype each."""
    cases = list(size_cases())
    if ALL:
        return cases
    small = ("turned", "loss of rows", "windows")
    families = [family for family in FAMILIES if family.name in small]
    picked = [(family, family.shapes[5], DTYPES[k % len(DTYPES)]) for k, family in enumerate(families)]
    return [case for case in cases if (case.family, case.shape, case.dtype) in picked]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def test_every_family_has_its_shapes() -> None:
    counts = Counter((case.family.name, case.dtype) for case in size_cases())
    assert len(counts) == len(FAMILIES) * len(DTYPES)
    assert min(counts.values()) >= 30, counts


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_shape(case: SizeCase, worker: Worker, tmp_path: Path) -> None:
    """The first draft, and another one that the shape's place in the list chooses."""
    file = tmp_path / "sized.py"
    file.write_text(case.source)
    task = Task(str(file), "Sized")
    inspection = worker.inspect(task)
    assert inspection.graph is not None, inspection.findings
    proposal = propose(inspection, Target("Sized", file, "sm_90a"))
    if not proposal.drafts and any(words in proposal.findings[0].message for words in NOTHING_TO_GAIN):
        return
    assert proposal.drafts, proposal.findings
    other = case.family.shapes.index(case.shape) % len(proposal.drafts)
    for draft in dict.fromkeys((proposal.drafts[0].source, proposal.drafts[other].source)):
        candidate = tmp_path / f"draft{len(list(tmp_path.iterdir()))}" / "sized_cute.py"
        candidate.parent.mkdir()
        candidate.write_text(draft)
        dims = inspection.graph.dynamic_dims
        verdict = worker.validate(task, candidate, device="emulated", dynamic_dims=dims, quick=True)
        assert (verdict.ok, verdict.precision) == (True, "kept"), (case.name, verdict.findings)
