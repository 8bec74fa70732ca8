"""What a job with a model may spend, what it keeps for later, whose leave it needs, and what no text of it may hold."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.job import Job
from cutesmith_agent.llm.budget import Budget, OverBudgetError, most_tokens
from cutesmith_agent.llm.catalogue import known
from cutesmith_agent.llm.port import Part, Prompt, Usage
from cutesmith_agent.llm.settings import ModelSettings, Wish
from cutesmith_agent.trajectories import trajectories
from loop_rig import best
from model_rig import KEY, ModelRig, make_model_rig, round_of, turned, written
from scripted_evaluator import Request, Script
from scripted_messages import Act, Drip, Fail, Say, bottleneck, patch

AT_4, AT_3, AT_2 = Script(ms=4.0), Script(ms=3.0), Script(ms=2.0)
BROKEN = Script(ms=4.0, compile="fails")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRig:
    return make_model_rig(tmp_path, monkeypatch.setenv)


def wishing(rig: ModelRig, **wish: Any) -> Job:
    return replace(rig.job, model=Wish(**wish))


@given(
    st.lists(st.tuples(st.integers(0, 60_000), st.floats(0, 1)), max_size=40),
    st.floats(0.05, 5.0),
    st.integers(10_000, 500_000),
    st.booleans(),
)
def test_no_run_of_answers_breaks_a_bound(
    steps: list[tuple[int, float]], dollars: float, tokens: int, is_priced: bool
) -> None:
    """Each answer uses as much of what it was allowed as it likes, and the prompt no more tokens than was foreseen."""
    price = known("claude-opus-5-5")
    settings = ModelSettings("claude-opus-5-5", max_dollars=dollars, max_tokens=tokens)
    budget = Budget(settings, price.price if price and is_priced else None)
    for length, share in steps:
        prompt = Prompt((Part("x" * length),), ())
        try:
            allowed = budget.answer_tokens(prompt)
        except OverBudgetError:
            continue
        budget.spend(Usage(cache_write=most_tokens(prompt), output=round(allowed * share)))
    assert budget.spent.total <= tokens
    assert (budget.dollars or 0.0) <= dollars


def test_the_dollar_bound_ends_the_job_before_the_call_that_might_break_it(model: ModelRig) -> None:
    acts = [written(AT_4), *round_of(AT_4, AT_3), *round_of(AT_3, AT_2)]
    report = model.run(acts, job=wishing(model, max_dollars=0.28))
    assert "of at most $0.28" in report["stopped"]
    assert report["model"]["dollars"] < 0.28
    assert best(report)["ok"] is True


def test_the_token_bound_holds_where_no_price_is_known(model: ModelRig) -> None:
    acts = [written(AT_4), *round_of(AT_4, AT_3), *round_of(AT_3, AT_2)]
    report = model.run(acts, job=wishing(model, model="claude-unheard-of-9", max_tokens=36_000))
    assert "of at most 36,000 tokens" in report["stopped"]
    assert (report["model"]["dollars"], report["model"]["name"]) == (None, "claude-unheard-of-9")
    assert "thinking" not in model.requests[0].body


def test_once_the_minutes_are_up_nothing_is_asked(model: ModelRig) -> None:
    report = model.run([written(AT_4)], job=wishing(model, max_minutes=1e-6))
    assert report["stopped"] == "No kernel: the 1e-06 minutes for it were up."
    assert model.requests == []


@pytest.mark.parametrize("what", ["headers", "thoughts"])
def test_minutes_that_end_while_an_answer_drips_end_the_job(model: ModelRig, what: Any) -> None:
    """What was found is kept, and no request follows."""
    began = time.monotonic()
    report = model.run([written(AT_4), Drip(what)], job=wishing(model, max_minutes=0.025))
    assert 1.5 <= time.monotonic() - began < 6.0
    assert report["stopped"] == "Validated and timed after the 0.025 minutes for it were up."
    assert best(report)["ok"] is True
    assert len(model.requests) == 2


@pytest.mark.parametrize("fault", [Fail(429, "rate_limit_error", "slow down", retry_after="3600"),
                                   Fail(529, "overloaded_error", "Overloaded", retry_after="0")])  # fmt: skip
def test_a_server_that_does_not_answer_again_ends_the_job_soon_with_its_words(model: ModelRig, fault: Fail) -> None:
    began = time.monotonic()
    model.retries = 1
    report = model.run([written(AT_4), fault, fault], job=wishing(model, max_minutes=1))
    assert time.monotonic() - began < 10.0
    assert best(report)["ok"] is True
    assert "the model could not be asked any more" in report["stopped"]
    (said,) = [one["message"] for one in report["findings"] if one["kind"] == "model-unavailable"]
    assert f"answered {fault.status}: {fault.message}, and " in said
    assert said.endswith("try later with --resume, nothing is lost.")


def test_usage_and_dollars_are_kept_by_call_candidate_and_job(model: ModelRig) -> None:
    report = model.run([written(BROKEN), turned(BROKEN, Script(ms=1.0))])
    used, price = report["model"], known("claude-opus-5-5")
    assert price is not None
    seen = [request.usage for request in model.requests]
    assert used["calls"] == 2
    assert used["uncached"] == sum(one["input_tokens"] + one["cache_creation_input_tokens"] for one in seen)
    assert used["cached"] == sum(one["cache_read_input_tokens"] for one in seen) > 1000
    assert used["dollars"] == pytest.approx(sum(used["candidates"].values()))
    assert [one["id"] for one in report["candidates"]][:2] == list(used["candidates"])


def test_a_job_that_was_killed_goes_on_without_asking_again(model: ModelRig) -> None:
    acts = [written(BROKEN), turned(BROKEN, AT_4), *round_of(AT_4, AT_3)]
    job = wishing(model, max_rounds=1)

    def interrupt(request: Request) -> None:
        if request.method == "time":
            raise KeyboardInterrupt

    model.rig.evaluator.interrupt = interrupt
    with pytest.raises(KeyboardInterrupt):
        model.run(acts, job=job)
    assert len(model.requests) == 2
    model.rig.evaluator.interrupt = lambda request: None
    report = model.run(acts[2:], job=job)
    assert [call["purpose"] for call in _records(model)] == ["synthesise", "fix", "judge", "code"]
    assert best(report)["timing"] is not None
    assert report["model"]["calls"] == 4


def test_a_recorded_job_replays_offline_to_the_same_end(model: ModelRig) -> None:
    acts = [written(BROKEN), turned(BROKEN, AT_4), Say(None, stop="end_turn"), *round_of(AT_4, AT_3)]
    job = wishing(model, max_rounds=1)
    recorded = model.run(acts, job=job)
    model.rig.evaluator.requests.clear()
    replayed = model.run_at("http://127.0.0.1:9", job=replace(job, again=True))
    assert replayed == recorded
    assert model.rig.evaluator.asked("compile") == [], "the verdicts came from the store as well"


def test_again_goes_on_where_a_bound_ended_the_job(model: ModelRig) -> None:
    model.run([written(AT_4), *round_of(AT_4, AT_3)], job=wishing(model, max_rounds=1))
    job = replace(wishing(model, max_rounds=2), again=True)
    report = model.run(round_of(AT_3, AT_2), job=job)
    assert len(model.requests) == 2
    assert report["model"]["calls"] == 5


def test_without_a_key_one_sentence_says_how_to_set_it(model: ModelRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    report = model.run([])
    assert "ANTHROPIC_API_KEY is not set; run `export ANTHROPIC_API_KEY=" in report["stopped"]


def test_no_secret_and_no_foreign_path_is_in_any_prompt_row_or_event(model: ModelRig, tmp_path: Path) -> None:
    """The user's file holds a key, and the evaluator's findings hold paths: neither goes any further."""
    text = model.rig.file.read_text().replace("return x", "return x if TOKEN else x")
    model.rig.file.write_text(text.replace("class NewGELU", f'TOKEN = "{KEY}"\n\n\nclass NewGELU'))
    said = f"/usr/lib/python3.11/site.py raised over {KEY} in {model.root}/pkg/gelu.py"
    model.rig.evaluator.said = said
    failing = [Script(ms=4.0, compile="says"), Script(ms=4.5, compile="says")]
    acts: list[Act] = [written(failing[0]), turned(*failing), turned(failing[1], AT_4), *round_of(AT_4, AT_3)]
    report = model.run(acts, job=wishing(model, max_rounds=1))
    assert best(report)["ok"] is True
    sent = "\n".join(json.dumps(request.body) for request in model.requests)
    assert "site.py raised over [redacted] in pkg/gelu.py" in sent
    for text in (sent, model.everything_kept(), json.dumps(report), *_exported(model)):
        assert KEY not in text
    for path in (str(tmp_path), "/usr/lib", str(Path.home()) + "/"):
        assert path not in sent
    assert all(
        request.headers.get("authorization", request.headers.get("x-api-key", "")).endswith(KEY)
        for request in model.requests
    )


def test_every_prompt_begins_with_what_never_changes(model: ModelRig) -> None:
    """System text, then the task, then the moment; each marked so that the server keeps it."""
    model.run([written(BROKEN), turned(BROKEN, AT_4), *round_of(AT_4, AT_3)], job=wishing(model, max_rounds=1))
    bodies = [request.body for request in model.requests]
    assert len({json.dumps([body["system"], body["tools"]]) for body in bodies}) == 1
    assert len({json.dumps(body["messages"][0]["content"][0]) for body in bodies}) == 1
    for body in bodies:
        assert "cache_control" in body["system"][-1]
        assert "cache_control" in body["messages"][0]["content"][0]
    judged, coded = (body["messages"][0]["content"] for body in bodies[2:])
    assert judged[1] == coded[1], "judge and coder read the same kernel"
    assert [request.usage["cache_read_input_tokens"] > 0 for request in model.requests] == [False, True, True, True]


def test_exported_trajectories_have_prompt_reply_verdict_and_reward(model: ModelRig) -> None:
    """Each reply's own: an answer that could not be used has no part in what a later one was worth."""
    acts: list[Act] = [Say(None, text="no", stop="end_turn"), written(BROKEN), turned(BROKEN, AT_4)]
    acts += [Say(None, stop="refusal"), bottleneck(), patch("nothing()", "pass"), turned(AT_4, AT_2)]
    model.run(acts, job=wishing(model, max_rounds=1))
    records = _records(model)
    assert [(one["purpose"], one["outcome"], one["reward"]) for one in records] == [
        ("synthesise", "unusable", 0.0),
        ("synthesise", "candidate", 0.1),
        ("fix", "candidate", 0.5),
        ("judge", "declined", 0.0),
        ("judge", "plan", 0.75),
        ("code", "unusable", 0.0),
        ("code", "candidate", 0.75),
    ]
    assert [one["step"] for one in records] == list(range(1, 8))
    assert records[0]["verdict"]["findings"][0]["message"].startswith("You called no tool.")
    assert records[1]["verdict"]["findings"][0]["kind"] == "compile-error"
    assert "The patch was refused" in records[5]["verdict"]["findings"][0]["message"]
    assert records[6]["verdict"]["timing"] is not None
    assert records[0]["file"] == "pkg/gelu.py"
    assert "There is no kernel yet" in records[0]["prompt"]
    assert records[1]["reply"]["calls"][0]["name"] == "submit_kernel"


@pytest.mark.parametrize("how", ["full", "confirmed"])
def test_a_kernel_that_fails_its_last_proof_is_not_rewarded_as_right(model: ModelRig, how: str) -> None:
    wrong = replace(AT_2, **{how: "fails"})
    model.run([written(AT_4), *round_of(AT_4, wrong)], job=wishing(model, max_rounds=1))
    records = _records(model)
    assert [one["reward"] for one in records] == [0.5, 0.2, 0.2]
    assert records[-1]["verdict"]["ok"] is False


def _records(model: ModelRig) -> list[dict[str, Any]]:
    with model.store() as store:
        return list(trajectories(store, model.root, model.rig.file, "NewGELU"))


def _exported(model: ModelRig) -> list[str]:
    return [json.dumps(record) for record in _records(model)]
