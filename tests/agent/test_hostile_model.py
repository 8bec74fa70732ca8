"""Answers of a model, or of whoever stands behind its address, that mean harm: each ends in a next step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.llm.settings import Wish
from model_rig import KEY, ModelRig, make_model_rig, round_of, source, turned, written
from scripted_evaluator import Script
from scripted_messages import Act, Cut, Fail, Say, ScriptedMessages, kernel, patch

GOOD, BROKEN = Script(ms=1.0), Script(ms=1.0, compile="fails")
HOSTILE = "\x1b]0;owned\x07 \u202e\u2066 evil"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRig:
    return make_model_rig(tmp_path, monkeypatch.setenv)


def deep(tool: str) -> Act:
    return Cut(tool, '{"summary": "a", "edits": ' + "[" * 20_000, "tool_use")


FIRST: dict[str, tuple[Act, str]] = {
    "giant": (kernel("x = 1\n" * 60_000), "was longer than it may be"),
    "deeply nested JSON": (deep("submit_kernel"), "was not valid JSON"),
    "half a character": (Cut("submit_kernel", '{"summary": "a", "source": "\\ud800"}', "tool_use"), "not valid JSON"),
    "a number": (Cut("submit_kernel", "17", "tool_use"), "takes an object"),
    "a list": (Say("submit_kernel", []), "takes an object"),
    "nothing": (Say(None, stop="end_turn"), "You called no tool"),
    "a NUL": (kernel(source(GOOD) + "# \0\n"), "hides or reorders text"),
    "reordered text": (kernel(source(GOOD) + "# \u202e\n"), "hides or reorders text"),
    "an endless sum": (kernel("x = " + " + ".join(["1"] * 20_000)), "nested too deeply"),
    "nested brackets": (kernel("x = " + "(" * 900 + ")" * 900), "no valid Python"),
    "a guard bound again": (kernel(f"{source(GOOD)}\nsupports = lambda *inputs: True\n"), "binds supports again"),
    "a guard defined again": (
        kernel(f"{source(GOOD)}\ndef supports(*inputs):\n    return True\n"),
        "binds supports again",
    ),
}


@pytest.mark.parametrize("kinds", [list(FIRST)[at::3] for at in range(3)], ids=", ".join)
def test_a_first_answer_that_means_harm_is_told_why(model: ModelRig, kinds: list[str]) -> None:
    for kind in kinds:
        model.run([FIRST[kind][0], written(GOOD), written(GOOD)], job=replace(model.job, resume=False))
        assert FIRST[kind][1] in model.requests[1].moment, kind
        assert model.rig.events[-1]["report"]["best"] is not None


def edit(find: Any, replacement: Any, **more: Any) -> Say:
    return Say("submit_patch", {"summary": "a", "edits": [{"find": find, "replace": replacement, **more}]})


PATCHES: dict[str, tuple[Act, str]] = {
    "another file": (
        Say("submit_patch", {"summary": "a", "path": "/", "edits": [{"find": "root", "replace": "", "file": "/a"}]}),
        "Nothing was changed",
    ),
    "edits that are none": (Say("submit_patch", {"summary": 1, "edits": [1, None]}), "Edit 1 is no object"),
    "a line beyond all": (edit("nothing()", "y", near_line=10**300), "Nothing was changed"),
    "no number": (Cut("submit_patch", '{"summary": "a", "edits": [{"find": "q", "replace": "y", "near_line": NaN}]}',
                      "tool_use"), "Nothing was changed"),
    "deeply nested JSON": (deep("submit_patch"), "was not valid JSON"),
    "a hundred edits": (
        Say("submit_patch", {"summary": "a", "edits": [{"find": f"line{n}", "replace": ""} for n in range(200)]}),
        "[...]",
    ),
    "nesting": (patch("    return None", "    return " + "(" * 900 + ")" * 900), "Nothing was changed"),
}  # fmt: skip


def test_patches_that_mean_harm_change_nothing_and_are_told_why(model: ModelRig) -> None:
    for kind, (act, told) in PATCHES.items():
        model.run([written(BROKEN), act, turned(BROKEN, GOOD)], job=replace(model.job, resume=False))
        assert told in model.requests[2].moment, kind
        assert len(model.requests[2].moment) < 20_000
        assert model.rig.events[-1]["report"]["best"] is not None


def test_no_text_of_a_model_reaches_a_terminal_as_commands(model: ModelRig) -> None:
    """Summaries are shown while the job runs, an API's reasons when it ends."""
    model.run([kernel(source(BROKEN), HOSTILE), Fail(400, "invalid_request_error", HOSTILE)])
    shown = json.dumps(model.rig.events, ensure_ascii=False)
    assert "evil" in shown
    for mark in ("\x1b", "\\u001b", "\x07", "\\u0007", "\u202e", "\u2066"):
        assert mark not in shown


class _Counting(ScriptedMessages):
    """Says of its answers that they took fewer tokens than none."""

    def _usage(self, body: dict[str, Any]) -> dict[str, Any]:
        return dict.fromkeys(super()._usage(body), -1_000_000)


def test_a_negative_count_lifts_no_bound(model: ModelRig) -> None:
    slower = [Script(ms=9.0 + step) for step in range(4)]
    acts = [written(slower[0]), Say(None, stop="end_turn"), Say(None, stop="end_turn")]
    with _Counting(acts) as endpoint:
        job = replace(model.job, model=Wish(max_rounds=1))
        report = model.run_at(endpoint.url, job=job)
    assert report["model"]["uncached"] == 0
    assert report["model"]["dollars"] >= 0


def test_what_looks_like_a_key_in_an_answer_is_not_kept(model: ModelRig) -> None:
    asked = kernel(source(BROKEN).replace("# a model's", f"# a model's {KEY}"), f"the key is {KEY}")
    model.run([asked, written(GOOD)])
    assert KEY not in model.everything_kept()
    assert KEY not in json.dumps([request.body for request in model.requests])


class _KilledAt(list[Any]):
    """Events that end the process that tells them: the first `count` are told."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def append(self, event: Any) -> None:
        if len(self) >= self._count:
            raise KeyboardInterrupt
        super().append(event)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ModelRig]:
    return lambda: make_model_rig(tmp_path_factory.mktemp("killed"), monkeypatch.setenv)


def test_a_job_killed_at_any_moment_goes_on_and_asks_nothing_twice(fresh: Callable[[], ModelRig]) -> None:
    at_4, at_2 = Script(ms=4.0), Script(ms=2.0)
    acts: list[Act] = [written(replace(at_4, compile="fails")), turned(replace(at_4, compile="fails"), at_4)]
    acts += round_of(at_4, at_2)
    whole = fresh()
    wish = Wish(max_rounds=1)
    expected = whole.run(acts, job=replace(whole.job, model=wish))
    count = len(whole.rig.events)
    assert count > 20
    for moment in range(1, count - 1, 4):  # the last event tells of a job that is finished
        model = fresh()
        job = replace(model.job, model=wish)
        model.rig.events = _KilledAt(moment)
        with pytest.raises(KeyboardInterrupt):
            model.run(acts, job=job)
        asked = len(model.requests)
        model.rig.events = []
        report = model.run(acts[asked:], job=job)
        assert asked + len(model.requests) == len(acts), moment
        assert report["stopped"] == expected["stopped"], moment
        assert [one["id"] for one in report["candidates"]] == [one["id"] for one in expected["candidates"]]
        assert report["model"]["calls"] == len(acts)
