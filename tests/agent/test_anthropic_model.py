"""The real SDK against an endpoint that speaks the Messages API: what is sent, and what becomes of each way to fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from cutesmith_agent.llm.anthropic_model import AnthropicModel
from cutesmith_agent.llm.port import ModelUnavailableError, Part, Prompt, Reply
from cutesmith_agent.llm.settings import ModelSettings
from cutesmith_agent.llm.tools import TOOLS
from model_rig import KEY
from scripted_messages import Act, Cut, Drip, Fail, Say, ScriptedMessages, kernel

PROMPT = Prompt((Part("what never changes " * 400, cached=True),), (Part("the task"), Part("the moment")))
WHOLE = kernel("import torch\n" * 100)


@pytest.fixture
def endpoint() -> Iterator[ScriptedMessages]:
    with ScriptedMessages(lambda number, body: ACTS[min(number, len(ACTS) - 1)]) as made:
        yield made


ACTS: list[Act] = []


def ask(
    endpoint: ScriptedMessages, *acts: Act, deadline_s: float = 20.0, told: list[str] | None = None, **settings: object
) -> Reply:
    ACTS[:] = acts
    chosen = replace(ModelSettings("claude-opus-5-5", base_url=endpoint.url, silence_s=5.0), **settings)
    model = AnthropicModel(chosen, KEY)
    hear = (told if told is not None else []).append
    return model.ask(PROMPT, max_tokens=9_000, deadline_s=deadline_s, on_progress=hear)


def test_an_answer_comes_whole_with_its_usage(endpoint: ScriptedMessages) -> None:
    reply = ask(endpoint, WHOLE)
    assert (reply.stop, reply.problem, reply.calls[0].name) == ("tool_use", None, "submit_kernel")
    assert reply.calls[0].input == WHOLE.input
    assert reply.usage.cache_write > 1_000
    assert reply.usage.output > 300


def test_what_is_sent(endpoint: ScriptedMessages) -> None:
    ask(endpoint, WHOLE, effort="high")
    (request,) = endpoint.requests
    body = request.body
    assert body["system"] == [{"type": "text", "text": PROMPT.system[0].text, "cache_control": {"type": "ephemeral"}}]
    assert [block["text"] for block in body["messages"][0]["content"]] == ["the task", "the moment"]
    assert [tool["name"] for tool in body["tools"]] == [tool["name"] for tool in TOOLS["kernel"]]
    assert (body["stream"], body["max_tokens"]) == (True, 9_000)
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "high"})
    assert "tool_choice" not in body, "the newest models refuse a forced tool"


def test_an_older_model_gets_a_budget_for_its_thinking(endpoint: ScriptedMessages) -> None:
    ask(endpoint, WHOLE, model="claude-haiku-4-5-20251001")
    body = endpoint.requests[0].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 4_500}
    assert "output_config" not in body


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error")])
def test_a_busy_server_is_asked_again_when_it_says(endpoint: ScriptedMessages, status: int, kind: str) -> None:
    started = time.monotonic()
    reply = ask(endpoint, Fail(status, kind, "busy", retry_after="0.9"), WHOLE)
    assert reply.problem is None
    assert time.monotonic() - started >= 0.9
    assert len(endpoint.requests) == 2


def test_a_server_that_stays_busy_is_named_with_its_reason(endpoint: ScriptedMessages) -> None:
    with pytest.raises(ModelUnavailableError, match=r"answered 429: too many, and did so 2 times; try later"):
        ask(endpoint, Fail(429, "rate_limit_error", "too many", retry_after="0.1"), retries=1)


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (Fail(401, "authentication_error", "invalid x-api-key"), "401: invalid x-api-key; check ANTHROPIC_API_KEY"),
        (
            Fail(404, "not_found_error", "model: x"),
            r"404: model: x; check the model claude-opus-5-5 \(CUTESMITH_MODEL\)",
        ),
        (Fail(400, "invalid_request_error", "no"), r"400: no\.$"),
    ],
)
def test_what_asking_again_does_not_mend_is_said_at_once(endpoint: ScriptedMessages, act: Act, told: str) -> None:
    with pytest.raises(ModelUnavailableError, match=told) as caught:
        ask(endpoint, act)
    assert len(endpoint.requests) == 1
    assert KEY not in str(caught.value)


def test_a_slow_stream_is_waited_for(endpoint: ScriptedMessages) -> None:
    """Each piece comes within the time that silence may last; the whole takes longer."""
    reply = ask(endpoint, replace(WHOLE, pause_s=0.15), silence_s=0.6)
    assert reply.problem is None


def test_a_stream_that_falls_silent_is_given_up(endpoint: ScriptedMessages) -> None:
    reply = ask(endpoint, replace(WHOLE, pause_s=2.0), silence_s=0.3)
    assert "broke off" in str(reply.problem)
    assert reply.calls == ()


def test_an_answer_that_takes_too_long_is_given_up(endpoint: ScriptedMessages) -> None:
    assert ask(endpoint, replace(WHOLE, pause_s=0.1), deadline_s=0.2).problem == "took too long"


@pytest.mark.parametrize("what", ["headers", "pings", "thoughts"])
def test_an_answer_that_drips_for_ever_ends_with_its_time(endpoint: ScriptedMessages, what: Any) -> None:
    """Bytes keep coming, so no silence is ever long enough; nothing but the whole's own time ends it."""
    started = time.monotonic()
    try:
        said = str(ask(endpoint, Drip(what), deadline_s=0.8, silence_s=60.0).problem)
    except ModelUnavailableError as error:
        said = str(error)
    assert 0.8 <= time.monotonic() - started < 3.0
    assert said == "took too long" if what != "headers" else "did not begin to answer within 1 s" in said


def test_thinking_that_was_not_shown_is_paid_for(endpoint: ScriptedMessages) -> None:
    reply = ask(endpoint, Drip("thoughts"), deadline_s=1.0)
    assert 100 < reply.usage.output < 9_000


def test_a_wait_beyond_the_time_there_is_is_not_begun(endpoint: ScriptedMessages) -> None:
    started = time.monotonic()
    told = (
        r"answered 429: slow down, and asks to wait 3,600 s where 20 s are left for the call; try later with --resume"
    )
    with pytest.raises(ModelUnavailableError, match=told):
        ask(endpoint, Fail(429, "rate_limit_error", "slow down", retry_after="3600"))
    assert time.monotonic() - started < 3.0
    assert len(endpoint.requests) == 1


def test_a_date_to_come_back_at_is_a_wait_too(endpoint: ScriptedMessages) -> None:
    far = formatdate(time.time() + 3600, usegmt=True)
    with pytest.raises(ModelUnavailableError, match=r"asks to wait 3,(600|599) s"):
        ask(endpoint, Fail(503, "api_error", "later", retry_after=far))


def test_a_server_that_is_overloaded_again_and_again_has_its_time_and_no_more(endpoint: ScriptedMessages) -> None:
    """It says nothing of when to come back: the SDK's own waits grow, and the time ends them."""
    started = time.monotonic()
    with pytest.raises(ModelUnavailableError, match="did not begin to answer within 2 s"):
        ask(endpoint, Fail(529, "overloaded_error", "Overloaded"), deadline_s=1.5, retries=50)
    assert time.monotonic() - started < 4.0
    assert 2 <= len(endpoint.requests) < 10


def test_waiting_for_a_busy_server_is_told(endpoint: ScriptedMessages) -> None:
    told: list[str] = []
    ask(endpoint, Fail(529, "overloaded_error", "busy", retry_after="0.2"), WHOLE, told=told)
    assert any("is busy (529): asking again in 0 s, as it says" in each for each in told)


def test_a_redirection_is_not_followed(endpoint: ScriptedMessages) -> None:
    """The key and the code go to the host that was agreed to, and to no other."""
    with ScriptedMessages([WHOLE]) as other, pytest.raises(ModelUnavailableError, match="answered 307"):
        ask(endpoint, Fail(307, "api_error", "over there", location=f"{other.url}/v1/messages"))
    assert other.requests == []


def test_half_an_answer_counts_for_nothing_and_its_tokens_are_counted(endpoint: ScriptedMessages) -> None:
    """The SDK makes a value of half a JSON text: a kernel cut in its middle would look like a whole one."""
    reply = ask(endpoint, Cut("submit_kernel", '{"summary": "a", "source": "' + "x = 1; " * 300, None))
    assert reply.calls == ()
    assert "broke off" in str(reply.problem)
    assert reply.usage.output > 500
    assert reply.usage.cache_write > 1_000


def test_a_refusal_is_a_reply(endpoint: ScriptedMessages) -> None:
    assert ask(endpoint, Say(None, stop="refusal")).stop == "refusal"
