"""A job that goes on, or is replayed, is told what it was told before: no figure that was measured since reaches it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_agent.llm.settings import Wish
from cutesmith_agent.proposing import Step, Stop, Trial
from cutesmith_agent.schedules import Schedules
from cutesmith_agent.store.calls import Call
from cutesmith_agent.subject import candidate_id
from cutesmith_evaluator.types import Profile, Timing
from model_rig import ModelRig, make_model_rig, round_of, turned, written
from scripted_evaluator import H200, MEASURES, Request, Script, ScriptedEvaluator, draft
from scripted_messages import Act, bottleneck

NOWHERE = "http://127.0.0.1:9"
PROFILER = "The profiler on the best kernel"


class Drifting(ScriptedEvaluator):
    """A device that gets slower and slower, and whose profiler never says the same twice."""

    def time(self, *args: Any, **kwargs: Any) -> Timing:
        timing, drift = super().time(*args, **kwargs), 1 + len(self.requests) / 1000
        arms = tuple(replace(arm, median_ms=arm.median_ms * drift) for arm in timing.arms)
        return replace(timing, arms=arms, fraction_of_copy=timing.fraction_of_copy / drift)

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        seen = super().profile(*args, **kwargs)
        return replace(seen, measured=(replace(MEASURES, us=2000.0 + len(self.requests)),))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRig:
    return drifting(make_model_rig(tmp_path, monkeypatch.setenv))


def drifting(model: ModelRig) -> ModelRig:
    model.rig.evaluator = Drifting()
    return model


def calls(model: ModelRig) -> list[Call]:
    with model.store() as store:
        ((job, _, _),) = store.calls.jobs(None, None)
        return [call for _, call in store.calls.of(job)]


def tried(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The drafts with all that was said of them; the last proof is made anew each time."""
    return [one for one in report["candidates"] if one["draft"] is None]


def faster(count: int) -> list[Script]:
    return [Script(ms=9.0 - step) for step in range(count)]


def five_rounds() -> list[Act]:
    """The profiler is shown from the third on; in the fourth a change has to be mended."""
    steps = faster(6)
    broken = replace(steps[4], quick="fails")
    acts: list[Act] = [written(steps[0]), *(act for a, b in pairwise(steps[:4]) for act in round_of(a, b))]
    acts += [bottleneck(), turned(steps[3], broken), turned(broken, steps[4], "mended")]
    return [*acts, *round_of(steps[4], steps[5])]


def test_a_replay_asks_nothing_and_tells_the_same(model: ModelRig) -> None:
    acts = five_rounds()
    job = replace(model.job, model=Wish(max_rounds=5))
    recorded = model.run(acts, job=job)
    before = calls(model)
    assert sum(PROFILER in "".join(call.prompt) for call in before) == 7
    asked = len(model.rig.evaluator.requests)
    for _ in range(2):
        replayed = model.run_at(NOWHERE, job=replace(job, again=True))
        assert tried(replayed) == tried(recorded)
        assert replayed["stopped"] == recorded["stopped"]
        assert calls(model) == before
    again = model.rig.evaluator.requests[asked:]
    assert {one.method for one in again} <= {"inspect", "validate", "time", "profile", "confirm"}, "of the last proof"
    assert len({one.tag for one in again if one.method == "time"}) == 1


@pytest.mark.parametrize("moment", [4, 7])
def test_a_job_that_was_cut_off_after_the_profiler_was_shown_goes_on(model: ModelRig, moment: int) -> None:
    """Cut off at the trial of that many candidates; the answers it has are not asked for again."""
    acts = five_rounds()
    job = replace(model.job, model=Wish(max_rounds=5))

    def interrupt(request: Request) -> None:
        if len(model.rig.evaluator.asked("compile")) == moment:
            raise KeyboardInterrupt

    model.rig.evaluator.interrupt = interrupt
    with pytest.raises(KeyboardInterrupt):
        model.run(acts, job=job)
    asked = len(model.requests)
    model.rig.evaluator.interrupt = lambda request: None
    report = model.run(acts[asked:], job=job)
    assert asked + len(model.requests) == len(acts)
    assert report["stopped"] == "Validated and timed after all 5 rounds by the model."
    assert report["model"]["calls"] == len(acts)


def test_more_rounds_go_on_from_what_was_told(model: ModelRig) -> None:
    """After the profiler was shown, and with a last proof in between that gave other figures."""
    acts = five_rounds()
    first = acts[:7]  # three rounds
    model.run(first, job=replace(model.job, model=Wish(max_rounds=3)))
    report = model.run(acts[7:], job=replace(model.job, model=Wish(max_rounds=5), again=True))
    assert len(model.requests) == len(acts) - len(first)
    assert report["model"]["calls"] == len(acts)


def test_a_draft_that_failed_its_last_proof_is_still_what_it_was_in_the_search(model: ModelRig) -> None:
    steps = [*faster(2), replace(faster(3)[2], full="fails")]
    acts: list[Act] = [written(steps[0]), *(act for a, b in pairwise(steps) for act in round_of(a, b))]
    job = replace(model.job, model=Wish(max_rounds=2))
    recorded = model.run(acts, job=job)
    before = calls(model)
    replayed = model.run_at(NOWHERE, job=replace(job, again=True))
    assert [one["draft"] or one["id"] for one in replayed["candidates"]] == [
        one["draft"] or one["id"] for one in recorded["candidates"]
    ]
    assert replayed["stopped"] == recorded["stopped"]
    assert calls(model) == before


def test_time_that_was_used_up_is_used_up_in_a_replay_too(model: ModelRig) -> None:
    job = replace(model.job, model=Wish(max_minutes=0.05))
    recorded = model.run([replace(written(faster(1)[0]), pause_s=0.22)], job=job)
    assert recorded["stopped"] == "Validated and timed after the 0.05 minutes for it were up."
    replayed = model.run_at(NOWHERE, job=replace(job, again=True))
    assert replayed["stopped"] == recorded["stopped"]
    more = model.run(round_of(*faster(2)), job=replace(job, again=True, model=Wish(max_minutes=5, max_rounds=1)))
    assert more["stopped"] == "Validated and timed after all 1 rounds by the model."


def test_the_time_that_a_verdict_took_is_given_again_with_it(model: ModelRig) -> None:
    """Else recipes that ran out of time would be tried further in a replay, and other prompts follow."""
    drafts = [draft(Script(ms=5.0 - width), width=width) for width in range(3)]
    model.run([], *drafts, job=replace(model.job, proposer="recipes"))
    with model.store() as store:
        (job,) = [row[0] for row in store._connection.execute("SELECT id FROM jobs")]
        told = store.trials.of(job, H200)
    assert all(one.seconds > 0 for one in told.values())
    trials = [Trial(each, told[candidate_id(each.source)].candidate, 150.1) for each in drafts]
    assert isinstance(Schedules(drafts).next(trials[:1]), Step)
    stop = Schedules([*drafts, draft(Script(), width=9)]).next(trials[:2])
    assert isinstance(stop, Stop)
    assert "the 300 s for tuning were up" in stop.reason


@st.composite
def courses(draw: st.DrawFn) -> list[Act]:
    """A first kernel, then rounds that are faster, slower, broken and mended, or broken for good."""
    best = Script(ms=20.0)
    acts: list[Act] = [written(best)]
    for number in range(draw(st.integers(3, 5))):
        after = Script(ms=20.0 + (number + 1) * draw(st.sampled_from([-2.0, 2.0])))
        broken = replace(after, compile="fails", eager_ms=4.0 + number)
        is_broken = draw(st.booleans())
        acts += [bottleneck(), turned(best, broken if is_broken else after)]
        acts += [turned(broken, after)] if is_broken else []
        best = after if after.ms < best.ms else best
    return acts


@settings(max_examples=5, deadline=None)
@given(acts=courses())
def test_whatever_the_course_its_replay_is_the_same(acts: list[Act], tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patches:
        model = drifting(make_model_rig(tmp_path_factory.mktemp("course"), patches.setenv))
        job = replace(model.job, model=Wish(max_rounds=sum(act == bottleneck() for act in acts)))
        recorded = model.run(acts, job=job)
        before = calls(model)
        replayed = model.run_at(NOWHERE, job=replace(job, again=True))
    assert (tried(replayed), replayed["stopped"]) == (tried(recorded), recorded["stopped"])
    assert calls(model) == before
