"""A model of the editor's: the lines to it and from it, and what of its answers counts."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_agent.llm import editor_link
from cutesmith_agent.llm.editor_link import EditorLink, EditorLinkError, lines_from
from cutesmith_agent.llm.editor_model import EditorModel
from cutesmith_agent.llm.port import ModelUnavailableError, Part, Prompt, Reply, ToolCall, Usage

PROMPT = Prompt((Part("You write kernels.", cached=True), Part("Contract.")), (Part("Task."),))
ANSWER = {
    "text": "Here.",
    "calls": [{"name": "submit_kernel", "input": {"summary": "s", "source": "x"}}],
    "usage": {"input": 900, "output": 80},
    "problem": None,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def link(*lines: bytes) -> tuple[EditorLink, list[dict[str, Any]]]:
    """A link whose editor says these lines, and the events that it is asked with."""
    events: list[dict[str, Any]] = []
    return EditorLink(events.append, lines), events


def said(reply: dict[str, Any], id: int = 1) -> bytes:
    return json.dumps({"id": id, **reply}).encode()


def ask(answer: Any, max_tokens: int = 1000) -> Reply:
    model = EditorModel(link(said({"answer": answer}))[0], "copilot/gpt-5")
    return model.ask(PROMPT, max_tokens=max_tokens, deadline_s=5.0, on_progress=lambda said: None)


def test_a_question_is_an_event_and_its_answer_a_line() -> None:
    asked, events = link(said({"answer": {"name": "copilot/gpt-5", "provider": "copilot"}}))
    named = asked.model(30.0)
    assert (named.name, named.provider) == ("copilot/gpt-5", "copilot")
    assert events == [{"event": "editor", "id": 1, "what": "model", "params": {}, "seconds": 30.0}]


def test_a_prompt_goes_out_with_the_forms_of_an_answer_and_what_they_call_counts() -> None:
    asked, events = link(said({"answer": ANSWER}))
    news: list[str] = []
    reply = EditorModel(asked, "copilot/gpt-5").ask(PROMPT, max_tokens=1000, deadline_s=5.0, on_progress=news.append)
    assert reply.calls == (ToolCall("submit_kernel", {"summary": "s", "source": "x"}),)
    assert (reply.stop, reply.usage, reply.problem) == ("tool_use", Usage(input=900, output=80), None)
    params = events[0]["params"]
    assert (params["model"], params["maxTokens"]) == ("copilot/gpt-5", 1000)
    assert (params["system"], params["user"]) == ("You write kernels.\n\nContract.", "Task.")
    assert [tool["name"] for tool in params["tools"]] == ["submit_kernel", "submit_patch", "name_bottleneck"]
    assert news == ["asking copilot/gpt-5 through the editor"]


def test_late_answers_to_what_was_given_up_are_passed_over() -> None:
    asked, _ = link(b"no JSON", b"[1]", said({"answer": {}}, id=7), said({"answer": {"name": "a/b", "provider": "a"}}))
    assert asked.model(5.0).name == "a/b"


def test_a_refusal_says_why_and_what_it_may_have_cost() -> None:
    for may_cost in (True, False):
        model = EditorModel(link(said({"refused": "The quota is used up.", "may_cost": may_cost}))[0], "copilot/gpt-5")
        with pytest.raises(ModelUnavailableError) as raised:
            model.ask(PROMPT, max_tokens=1000, deadline_s=5.0, on_progress=lambda said: None)
        assert raised.value.may_cost is may_cost
        assert str(raised.value).startswith("The quota is used up; recipes work without a model")


def test_an_editor_that_is_gone_or_silent_is_told_once_for_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, _ = link()
    for _ in range(2):
        with pytest.raises(EditorLinkError, match="the connection to it was closed"):
            gone.model(5.0)
    monkeypatch.setattr(editor_link, "_GRACE_S", 0.0)
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb"):
        silent = EditorLink(lambda event: None, lines_from(reading))
        with pytest.raises(EditorLinkError, match="did not answer within 0 s"):
            silent.model(0.05)


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), min_size=1), whole=st.booleans()
)
def test_lines_come_as_they_were_written(lines: list[bytes], whole: bool) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(b"\n".join(lines) + b"\n" * whole)
    assert list(lines_from(reading)) == (lines if whole or lines[-1] else lines[:-1])
    os.close(reading)


def test_an_editor_without_a_name_for_its_model_is_not_asked() -> None:
    for answer in (
        {},
        {"name": "a/b"},
        {"name": 1, "provider": "a"},
        {"name": "a", "provider": ""},
        {"name": "a" * 201, "provider": "a"},
        None,
    ):
        with pytest.raises(EditorLinkError, match="does not say which"):
            link(said({"answer": answer}))[0].model(5.0)


def test_an_answer_that_broke_off_or_is_too_long_calls_nothing() -> None:
    assert ask(ANSWER | {"problem": "broke off (quota)"}).calls == ()
    long = ask(ANSWER | {"text": "x" * 1000}, max_tokens=100)
    assert (long.problem, long.calls) == ("was longer than it may be", ())


def test_counts_that_are_too_low_lift_no_bound() -> None:
    for usage in ({}, None, {"input": 0, "output": -5}, {"input": "many", "output": 1}):
        used = ask(ANSWER | {"text": "x" * 800, "usage": usage}).usage
        assert used.input >= 3
        assert used.output >= 100
    assert ask(ANSWER | {"usage": {"input": 10**30, "output": 10**30}}).usage.total == 20_000_000


@settings(max_examples=40)
@given(answer=JSON | st.fixed_dictionaries(dict.fromkeys(ANSWER, JSON)))
def test_whatever_an_editor_answers_is_a_reply(answer: Any) -> None:
    reply = ask(answer)
    assert reply.calls == () or reply.problem is None
    assert reply.usage.total >= 0
