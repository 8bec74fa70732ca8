"""Windows along a line through shared memory, validated on the emulated device."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Target, propose
from cutesmith_agent.recipes.contract import Draft
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from suite import Case

MODULES = Path(__file__).parents[1] / "agent" / "recipes" / "window_modules.py"
LINES = {
    name: Case(name, MODULES, name, "reduction")
    for name in ("LongDepthwiseLine", "LineOfMaxima", "LineOfComputed", "LineOfHalves", "LineNextToItself")
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def of_kind(drafts: tuple[Draft, ...], constant: str) -> Draft:
    """The last guess whose schedule has this constant: blocks are smallest there."""
    return [draft for draft in drafts if constant in draft.schedule][-1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LongDepthwiseLine", "run"),
        ("LineOfMaxima", "run"),
        ("LineOfComputed", "results"),
        ("LineOfHalves", "run"),
        ("LineNextToItself", "results"),
    ],
)
def test_windows_of_a_line(worker: Worker, name: str, kind: str, tmp_path: Path) -> None:
    case = LINES[name]
    task = Task(str(case.write(tmp_path)), case.qualname)
    inspection = worker.inspect(task)
    assert inspection.graph is not None, inspection.findings
    draft = of_kind(propose(inspection, Target(case.qualname, Path(task.file), "sm_90a")).drafts, kind)
    candidate = tmp_path / "draft" / f"{case.qualname.lower()}_cute.py"
    candidate.parent.mkdir()
    candidate.write_text(draft.source)
    dims = inspection.graph.dynamic_dims
    verdict = worker.validate(task, candidate, device="emulated", dynamic_dims=dims, quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), (draft.schedule, verdict.findings)
