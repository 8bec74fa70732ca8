"""A lower precision than the module's is a failure, unless the user allows it for the class; it is said either way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loop_rig import Rig, best
from scripted_evaluator import Script, draft

LOWERED = Script(ms=2.0, quick="lowered", full="lowered", patched="lowered")


def test_it_is_a_failure_by_default(rig: Rig) -> None:
    report = rig.run(draft(LOWERED))["report"]
    assert report["best"] is None
    assert "Precision is lowered." in report["stopped"]


def test_a_job_that_allows_it_offers_the_kernel_and_says_so(rig: Rig) -> None:
    done = rig.run(draft(LOWERED), job=replace(rig.job, allow_lowered=True))
    found = best(done["report"])
    assert (done["exit"], found["ok"], found["precision"]) == (0, True, "lowered")
    assert {(one["kind"], one["severity"]) for one in found["findings"]} == {("lowered-precision", "warning")}
    assert "precision lowered" in done["report"]["kernel"]["source"]


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('allow_lowered_precision = ["NewGELU"]', True),
        ('allow_lowered_precision = ["Other"]', False),
        ("allow_lowered_precision = true", False),
        ("allow_lowered_precision = [", False),
    ],
)
def test_a_project_names_the_classes(rig: Rig, text: str, allowed: bool) -> None:
    (rig.root / "pyproject.toml").write_text(f"[tool.cutesmith]\n{text}\n")
    assert (rig.run(draft(LOWERED))["report"]["best"] is not None) is allowed


def test_what_is_wrong_besides_stays_a_failure(rig: Rig) -> None:
    report = rig.run(draft(replace(LOWERED, patched="fails")), job=replace(rig.job, allow_lowered=True))["report"]
    assert report["best"] is None


def test_a_verdict_with_the_allowance_is_none_without_it(rig: Rig) -> None:
    """A job that allows it is another job: its verdicts are not taken over."""
    rig.run(draft(LOWERED), job=replace(rig.job, allow_lowered=True, resume=True))
    report = rig.run(draft(LOWERED), job=replace(rig.job, resume=True, again=True))["report"]
    assert report["best"] is None


def test_a_finished_draft_names_the_one_it_was(rig: Rig) -> None:
    report = rig.run(draft(Script(ms=2.0)))["report"]
    drafted, finished = report["candidates"]
    assert finished["draft"] == drafted["id"]
