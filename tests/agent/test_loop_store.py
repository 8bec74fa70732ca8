"""What a job leaves in the store, and how it goes on after it was interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from cutesmith_agent.store.opening import open_store
from loop_rig import MODULE, Rig, best
from scripted_evaluator import H200, Request, Script, ScriptedEvaluator, draft


def test_every_step_is_a_row(rig: Rig):
    rig.run(draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2))
    with open_store(rig.root).store as store:
        job = store.latest(str(rig.file), "NewGELU")
        assert job is not None
        assert job.report == json.loads(json.dumps(rig.events[-1]["report"]))
        stages = [step.stage for step in store.transitions(job.id)]
        trial = ["propose", "guards", "compile", "validate", "time", "time"]
        proof = ["validate", "validate", "time", "time", "guards", "validate", "validate", "done"]
        assert stages == ["propose"] * 3 + trial * 2 + proof
        assert [one.id for one in store.candidates(job.id)] == [one["id"] for one in job.report["candidates"]]
    fractions = [event["fraction"] for event in rig.events if event["event"] == "stage"]
    assert fractions == sorted(fractions)


class PulledPlugError(BaseException):
    """The job is killed at this point."""


def pull_plug_at(method: str, tag: str, **kwargs: object) -> Callable[[Request], None]:
    def interrupt(request: Request) -> None:
        if (request.method, request.tag) == (method, tag) and kwargs.items() <= request.kwargs.items():
            raise PulledPlugError

    return interrupt


def test_an_interrupted_job_goes_on_where_it_was(rig: Rig):
    drafts = (draft(Script(ms=2.0), t=1), draft(Script(quick="fails"), t=2), draft(Script(ms=1.5), t=3))
    rig.evaluator.interrupt = pull_plug_at("time", "{'t': 3}", quick=True)
    with pytest.raises(PulledPlugError):
        rig.run(*drafts)
    rig.evaluator = ScriptedEvaluator()
    done = rig.run(*drafts, job=replace(rig.job, resume=True))
    assert rig.evaluator.asked("compile") == ["{'t': 3}"]
    assert rig.evaluator.asked("validate", quick=True) == ["{'t': 3}"] * 2  # the draft and the final bytes
    assert done["exit"] == 0
    assert [one["ok"] for one in done["report"]["candidates"]] == [True, False, True, True]
    assert best(done["report"])["schedule"] == {"t": 3}


def test_what_was_judged_elsewhere_or_before_an_edit_is_judged_anew(rig: Rig):
    drafts = (draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2))
    rig.evaluator.interrupt = pull_plug_at("time", "{'t': 2}", quick=True)
    with pytest.raises(PulledPlugError):
        rig.run(*drafts)
    rig.evaluator = ScriptedEvaluator(environment=replace(H200, torch="2.14.0"))
    rig.evaluator.interrupt = pull_plug_at("time", "{'t': 2}", quick=True)
    with pytest.raises(PulledPlugError):
        rig.run(*drafts, job=replace(rig.job, resume=True))
    assert rig.evaluator.asked("compile") == ["{'t': 1}", "{'t': 2}"]
    rig.evaluator = ScriptedEvaluator()
    rig.run(*drafts, job=replace(rig.job, resume=True, source=MODULE.replace("return x", "return x + 1")))
    assert rig.evaluator.asked("compile") == ["{'t': 1}", "{'t': 2}"]


def test_a_store_that_cannot_be_written_is_said_and_the_job_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(rig.root.parent / "state"))
    (rig.root / ".cutesmith").write_text("in the way")
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 0
    assert "results are kept in" in done["report"]["findings"][-1]["message"]
    assert str(rig.root.parent / "state") in best(done["report"])["path"]
