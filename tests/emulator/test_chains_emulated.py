"""Files with several kernels, where one cannot compute the module, validated on the emulated device."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.guards.static import judge
from cutesmith_evaluator.types import Task

MODULES = Path(__file__).parents[1] / "agent" / "recipes" / "chain_modules.py"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "draft", "kernels"), [("NormThenPool", 0, 2), ("ConvolutionOfPooled", -1, 2), ("NormThenMean", 0, 3)]
)
def test_kernels_one_after_the_other(name: str, draft: int, kernels: int, worker: Worker, tmp_path: Path) -> None:
    task = Task(str(MODULES), name)
    proposal = propose(worker.inspect(task), Target(name, Path(task.file), "sm_90a"))
    assert proposal.drafts, proposal.findings
    source = proposal.drafts[draft].source
    assert source.count("@functools.cache") == kernels
    candidate = tmp_path / f"{name.lower()}_cute.py"
    candidate.write_text(source)
    verdict = worker.validate(task, candidate, device="emulated", quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings
    assert {finding.kind for finding in judge(source, candidate).findings} <= {"library-part"}
