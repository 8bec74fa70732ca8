"""The model's loop on an evaluator that stands for a device: which answer leads to which step, and when it ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.job import Job
from cutesmith_agent.llm.settings import Wish
from loop_rig import best
from model_rig import ModelRig, make_model_rig, round_of, turned, written
from scripted_evaluator import NO_DEVICE, Script, draft
from scripted_messages import Act, Cut, Fail, Gone, Overloaded, Raw, Say, bottleneck, patch

PROFILER = "The profiler on the best kernel"
AT_4, AT_3, AT_2, AT_5 = Script(ms=4.0), Script(ms=3.0), Script(ms=2.0), Script(ms=5.0)
BROKEN, TAILED = Script(ms=4.0, compile="fails"), Script(ms=2.0, quick="fails")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRig:
    return make_model_rig(tmp_path, monkeypatch.setenv)


def rounds(model: ModelRig, count: int) -> Job:
    return replace(model.job, model=Wish(max_rounds=count))


def ms(report: dict[str, Any]) -> float:
    return next(arm["median_ms"] for arm in best(report)["timing"]["arms"] if arm["name"] == "candidate")


def messages(report: dict[str, Any]) -> str:
    return " ".join(finding["message"] for finding in report["findings"])


def test_it_mends_what_fails_and_ends_on_the_fastest(model: ModelRig) -> None:
    acts: list[Act] = [
        written(BROKEN),
        turned(BROKEN, AT_4, "compiles now"),
        *round_of(AT_4, AT_5, "slower"),
        bottleneck("a tail"),
        turned(AT_4, TAILED, "faster, wrong by its tail"),
        turned(TAILED, AT_2, "with its tail"),
        *round_of(AT_2, AT_3, "slower again"),
    ]
    report = model.run(acts, job=rounds(model, 3))
    assert ms(report) == 2.0
    assert best(report)["origin"] == "llm"
    assert report["stopped"] == "Validated and timed after all 3 rounds by the model."
    assert [one["ok"] for one in report["candidates"]] == [False, True, True, False, True, True, True]
    assert len(model.requests) == len(acts)


def test_every_round_refines_the_best_and_not_the_latest(model: ModelRig) -> None:
    model.run([written(AT_4), *round_of(AT_4, AT_5), *round_of(AT_4, AT_3)], job=rounds(model, 2))
    for request in model.requests[-2:]:
        assert '"ms": 4.0' in request.moment
        assert '"ms": 5.0' not in request.moment
        assert "a change: right, precision kept, 5 ms (tried on one with 4 ms)" in request.moment


def test_a_plateau_shows_the_profiler_then_tries_another_structure_then_ends(model: ModelRig) -> None:
    slow = [Script(ms=4.0 + step) for step in range(1, 5)]
    other, worse = Script(ms=3.5), [Script(ms=9.0 + step) for step in range(3)]
    acts = [written(AT_4)]
    acts += [act for one in slow for act in round_of(AT_4, one)]
    acts += [written(other, "another structure")]
    acts += [act for one in worse for act in round_of(other, one)]
    report = model.run(acts)
    assert "a plateau: the last 2 gained less than 1%" in report["stopped"]
    assert ms(report) == 3.5
    purposes = [call.purpose for _, call in _calls(model)]
    assert purposes == ["synthesise", *["judge", "code"] * 4, "restart", *["judge", "code"] * 2]
    assert "gain nothing any more" in model.requests[9].moment


def _calls(model: ModelRig) -> Any:
    with model.store() as store:
        ((job, _, _),) = store.calls.jobs(None, None)
        return store.calls.of(job)


def test_a_second_beginning_follows_the_first_that_cannot_be_mended(model: ModelRig) -> None:
    failing = [replace(BROKEN, ms=float(number)) for number in range(6)]
    acts: list[Act] = [written(failing[0]), *(turned(a, b) for a, b in pairwise(failing))]
    report = model.run([*acts, written(AT_2), *round_of(AT_2, AT_3)], job=rounds(model, 1))
    assert "could not be mended" in model.requests[6].moment
    assert ms(report) == 2.0


def test_a_fix_is_given_what_its_error_calls_for(model: ModelRig) -> None:
    model.rig.evaluator.said = "AttributeError: module 'cutlass.cute.arch' has no attribute 'thread_index'"
    said = Script(ms=1.0, compile="says")
    model.run([written(said), turned(said, Script(ms=1.0))])
    first, fix = model.requests
    assert "# The CuTe DSL in short" in first.prompt
    assert "names that the DSL does not have" in fix.moment
    assert "names that the DSL does not have" not in first.prompt


def test_a_recipe_that_fits_is_where_the_model_begins(model: ModelRig) -> None:
    report = model.run(round_of(AT_3, AT_2), draft(AT_3), job=rounds(model, 1))
    assert "Now" not in model.requests[0].moment.partition("# The best kernel so far")[0]
    assert '"ms": 3.0' in model.requests[0].moment
    assert [one["origin"] for one in report["candidates"]] == ["recipe", "llm", "llm"]
    assert "1 of 1 schedules, all were tried, then all 1 rounds by the model" in report["stopped"]


def test_auto_asks_no_model_where_a_recipe_is_right(model: ModelRig) -> None:
    report = model.run([], draft(AT_3), job=replace(model.job, proposer="auto"))
    assert (len(model.requests), ms(report), report["model"]) == (0, 3.0, None)


def test_auto_asks_one_where_every_recipe_fails(model: ModelRig) -> None:
    job = replace(rounds(model, 1), proposer="auto")
    report = model.run([written(AT_4), *round_of(AT_4, AT_2)], draft(BROKEN, width=1), job=job)
    assert ms(report) == 2.0


def test_recipes_alone_ask_nobody(model: ModelRig) -> None:
    report = model.run([], job=replace(model.job, proposer="recipes"))
    assert report["stopped"] == "No recipe covers this module."
    assert model.requests == []


def test_without_a_device_a_right_kernel_is_the_end(model: ModelRig) -> None:
    model.rig.evaluator.environment = NO_DEVICE
    report = model.run([written(BROKEN), turned(BROKEN, AT_4)], job=replace(model.job, device="none"))
    assert best(report)["ok"] is None
    assert "Compiled for sm_90a, sm_80, sm_100a, not validated" in report["stopped"]
    assert "Compiled for" in report["kernel"]["source"]
    assert len(model.requests) == 2


def test_at_the_roofline_it_asks_no_more(model: ModelRig) -> None:
    report = model.run([written(Script(ms=1.01))])
    assert "at 99% of the copy bandwidth" in report["stopped"]
    assert len(model.requests) == 1


UNUSABLE: dict[str, tuple[Act, str]] = {
    "JSON that is none": (Cut("submit_kernel", '{"summary": tru}', "tool_use"), "was not valid JSON"),
    "an answer cut at its length": (
        Cut("submit_kernel", '{"summary": "a", "source": "import torch', "max_tokens"),
        "cut off",
    ),
    "a connection that breaks": (Cut("submit_kernel", '{"summary": "a", "sour', None), "broke off"),
    "an error after the beginning": (Overloaded(), "broke off (Overloaded)"),
    "an error in place of an answer": (Overloaded(begins=False), "broke off (Overloaded)"),
    "a connection that breaks at once": (Gone(), "broke off"),
    "an empty response": (Raw(b""), "never began"),
    "a tool that does not exist": (Say("run_shell", {"command": "ls"}), "run_shell, which is not asked for"),
    "a tool of another step": (bottleneck(), "name_bottleneck, which is not asked for"),
    "no tool": (Say(None, text="Here it is.", stop="end_turn"), "You called no tool"),
    "no source": (Say("submit_kernel", {"summary": "a"}), "lacks source"),
    "no object": (Say("submit_kernel", ["x"]), "takes an object"),
}


@pytest.mark.parametrize("kinds", [list(UNUSABLE)[at::4] for at in range(4)], ids=", ".join)
def test_an_answer_that_cannot_be_used_is_asked_for_again_with_the_reason(model: ModelRig, kinds: list[str]) -> None:
    report = model.run([*(UNUSABLE[kind][0] for kind in kinds), written(Script(ms=1.0))])
    assert ms(report) == 1.0
    for kind, request in zip(kinds, model.requests[1:], strict=True):
        assert "could not be used" in request.moment
        assert UNUSABLE[kind][1] in request.moment


PATCHES: dict[str, tuple[Act, str]] = {
    "that matches twice": (patch("    return None", "    return 1"), "Quote more lines around"),
    "that matches nowhere": (patch("    copy_the_tile()", "    pass"), "Nearest lines"),
    "without edits": (Say("submit_patch", {"summary": "a", "edits": []}), "`edits` is missing or empty"),
    "that breaks the syntax": (patch("def warm_up(module, x):", "def warm_up(module, x:"), "no valid Python"),
    "that changes nothing": (turned(BROKEN, BROKEN), "changes nothing"),
}


@pytest.mark.parametrize("kinds", [list(PATCHES)[at::2] for at in range(2)], ids=", ".join)
def test_a_patch_that_is_refused_is_asked_for_again_with_the_reason(model: ModelRig, kinds: list[str]) -> None:
    acts = [written(BROKEN), *(PATCHES[kind][0] for kind in kinds), turned(BROKEN, Script(ms=1.0))]
    report = model.run(acts)
    assert ms(report) == 1.0
    for kind, request in zip(kinds, model.requests[2:], strict=True):
        assert PATCHES[kind][1] in request.moment


def test_code_without_the_contracts_functions_is_mended(model: ModelRig) -> None:
    bare = Say("submit_kernel", {"summary": "a", "source": "import torch\n\n\nclass Kernel:\n    pass\n"})
    report = model.run([bare, written(Script(ms=1.0))])
    assert "defines no supports, explain, forward, warm_up" in model.requests[1].moment
    assert ms(report) == 1.0


def test_the_same_file_twice_is_not_judged_twice(model: ModelRig) -> None:
    model.run([written(BROKEN), written(BROKEN), turned(BROKEN, Script(ms=1.0))])
    assert "a file you handed in before (failed at compile: It does not compile.)" in model.requests[2].moment
    assert len(model.rig.evaluator.asked("compile")) == 2


def test_refusals_end_it_and_the_best_is_kept(model: ModelRig) -> None:
    refusal = Say(None, stop="refusal")
    report = model.run([written(AT_4), refusal, refusal])
    assert ms(report) == 4.0
    assert "the model declined to answer" in report["stopped"]


def test_answers_that_are_never_usable_end_it(model: ModelRig) -> None:
    report = model.run([Say(None, text="no", stop="end_turn")] * 4)
    assert report["stopped"].startswith("The model gave 4 answers in a row that could not be used")
    assert report["best"] is None


def test_a_wrong_key_is_told_with_the_apis_reason(model: ModelRig) -> None:
    report = model.run([Fail(401, "authentication_error", "invalid x-api-key")])
    assert "answered 401: invalid x-api-key; check ANTHROPIC_API_KEY." in report["stopped"]


def test_an_api_that_fails_later_costs_nothing_that_was_found(model: ModelRig) -> None:
    report = model.run([written(AT_4), *round_of(AT_4, AT_3), Fail(400, "invalid_request_error", "no credit")])
    assert ms(report) == 3.0
    assert "answered 400: no credit" in messages(report)


def test_offline_the_recipes_still_work(model: ModelRig) -> None:
    model.retries = 1
    report = model.run_at("http://127.0.0.1:9", draft(AT_3))
    assert ms(report) == 3.0
    assert "cannot be reached" in messages(report)
