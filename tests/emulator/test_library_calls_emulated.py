"""Kernels for what follows a convolution, which stays PyTorch's: declared in the file and said in the verdict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.guards.static import judge
from cutesmith_evaluator.types import Task

MODULES = Path(__file__).parents[1] / "agent" / "recipes" / "library_modules.py"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "draft"),
    [("PointwiseTail", -1), ("TurnedTail", -1), ("NormTail", 0), ("LeastChannel", -1), ("PooledTail", -1)],
)
def test_a_tail_is_right_and_says_what_is_not_its_own(name: str, draft: int, worker: Worker, tmp_path: Path) -> None:
    task = Task(str(MODULES), name)
    drafts = propose(worker.inspect(task), Target(name, Path(task.file), "sm_90a")).drafts
    source = [each.source for each in drafts if "LIBRARY_CALLS" in each.source][draft]
    candidate = tmp_path / "kernel" / f"{name.lower()}_cute.py"
    candidate.parent.mkdir()
    candidate.write_text(source)
    verdict = worker.validate(task, candidate, device="emulated", quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings
    findings = judge(source, candidate).findings
    assert {finding.kind for finding in findings} == {"library-part"}, findings
    assert any("torch.conv" in finding.message for finding in findings)


def test_a_convolution_alone_is_refused(worker: Worker) -> None:
    task = Task(str(MODULES), "NoTail")
    proposal = propose(worker.inspect(task), Target("NoTail", Path(task.file), "sm_90a"))
    assert not proposal.drafts
    assert "aten.convolution" in proposal.findings[0].message
