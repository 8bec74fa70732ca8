"""Streams that the API would never send: whatever stands at its address, a job gets a reply it can go on with."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_agent.llm.anthropic_model import AnthropicModel
from cutesmith_agent.llm.port import Part, Prompt
from cutesmith_agent.llm.settings import ModelSettings
from model_rig import KEY
from scripted_messages import Raw, ScriptedMessages, events_of, kernel

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # pydantic's, on values of the wrong kind
WHOLE = kernel("import torch\n" * 20)
COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
KINDS = ("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
         "message_stop")  # fmt: skip
JUNK = st.sampled_from([None, True, -1, 99, 10**30, "x", "\ud800", [], {}, [None], {"type": "zzz"}])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """An answer's events with something else in a few places of them, in another order, or cut off."""
    events: list[Any] = list(events_of(WHOLE, {"model": "m"}, dict.fromkeys(COUNTS, 5)))
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(events) - 1))
        events[number] = _changed(events[number], draw)
    if draw(st.booleans()):
        events = draw(st.permutations(events))
    text = "".join(f"event: {_name(each)}\ndata: {json.dumps(each)}\n\n" for each in events)
    return text.encode()[: draw(st.integers(0, len(text))) if draw(st.booleans()) else None]


def _name(event: Any) -> str:
    kind = event.get("type") if isinstance(event, dict) else None
    return kind if kind in KINDS else "message_start"


def _changed(value: Any, draw: st.DrawFn) -> Any:
    """One place of it, somewhere inside, is something else or gone."""
    if not isinstance(value, dict) or not value or draw(st.integers(0, 3)) == 0:
        return draw(JUNK)
    name = draw(st.sampled_from(sorted(value)))
    rest = {key: each for key, each in value.items() if key != name}
    return rest if draw(st.integers(0, 4)) == 0 else {**value, name: _changed(value[name], draw)}


@settings(max_examples=20, deadline=None)
@given(streams())
def test_no_stream_ends_in_anything_but_a_reply(data: bytes) -> None:
    with ScriptedMessages([Raw(data)]) as endpoint:
        model = AnthropicModel(ModelSettings("claude-opus-5-5", base_url=endpoint.url, retries=0), KEY)
        reply = model.ask(Prompt((), (Part("a"),)), max_tokens=9_000, deadline_s=20.0, on_progress=print)
    json.dumps(asdict(reply))
    assert all(isinstance(each, str) for each in (reply.stop, reply.text, *(call.name for call in reply.calls)))
    assert min(asdict(reply.usage).values()) >= 0
