"""An answer as it arrives, and what it amounts to when it breaks off."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from anthropic.lib.streaming import AsyncMessageStream

from cutesmith_agent.llm.port import Reply, ToolCall, Usage

_MOST_CHARACTERS_PER_TOKEN = 8  # more than this is no answer of the length that was asked for
_CHARACTERS_PER_TOKEN = 3.0  # of what had arrived of an answer that broke off, when no count of its tokens came
_TOKENS_PER_S = 150.0  # taken of one that broke off, where less was seen: thinking that is not shown is paid for
_NEWS = 4_000  # characters
_MOST_TOKENS = 10_000_000  # of one call


class Arriving:
    """What has come of an answer of at most `max_tokens`. `problem`, `is_counted`: as in `port.Reply`."""

    def __init__(self, max_tokens: int) -> None:
        self._most = max_tokens
        self._stream: AsyncMessageStream[Any] | None = None
        self._characters = 0
        self._began = 0.0
        self.problem: str | None = None
        self.is_counted = True

    @property
    def began(self) -> bool:
        return self._stream is not None

    async def read(self, stream: AsyncMessageStream[Any], tell: Callable[[str], None]) -> None:
        shown = 0
        async for event in stream:
            if event.type == "message_start":
                self._stream, self._began = stream, time.monotonic()
            if event.type == "content_block_delta":
                self._characters += len(_delta(event.delta))
            if self._characters >= shown + _NEWS:
                shown = self._characters
                tell(f"the model is answering: about {self._characters / _CHARACTERS_PER_TOKEN:,.0f} tokens")
            if self._characters > self._most * _MOST_CHARACTERS_PER_TOKEN:
                self.problem = "was longer than it may be"
                return

    def reply(self) -> Reply:
        """Only a whole answer counts: the SDK makes sense of half a JSON value too."""
        if self._stream is None:
            return Reply("", problem=self.problem or "never began", is_counted=self.is_counted)
        message = self._stream.current_message_snapshot
        problem = self.problem or (None if message.stop_reason else "broke off before its end")
        stop, text, calls = ("", "", ())
        try:
            stop, text, calls = _content(message)
        except (AttributeError, TypeError):  # the SDK takes what a server sends as it comes
            problem = problem or "is not as the API describes answers"
        return Reply(stop, text, () if problem else calls, self._usage(message, whole=problem is None), problem)

    def _usage(self, message: Any, *, whole: bool) -> Usage:
        def count(name: str) -> int:
            return _count(getattr(message.usage, name, None))

        output = max(count("output_tokens"), 0 if whole else self._guess())
        kept, found = count("cache_creation_input_tokens"), count("cache_read_input_tokens")
        return Usage(count("input_tokens"), kept, found, output)

    def _guess(self) -> int:
        """No fewer tokens than an answer that broke off may have taken: a bound on money counts with the most."""
        hidden = (time.monotonic() - self._began) * _TOKENS_PER_S
        return round(max(self._characters / _CHARACTERS_PER_TOKEN, min(self._most, hidden)))


def _content(message: Any) -> tuple[str, str, tuple[ToolCall, ...]]:
    """Why it stopped, its text, its calls of tools. Raises AttributeError, TypeError where they make no sense."""
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    text = "".join(block.text for block in message.content if block.type == "text")
    if not all(isinstance(each, str) for each in (message.stop_reason or "", *(name for name, _ in calls))):
        raise TypeError
    return message.stop_reason or "", text, tuple(ToolCall(*each) for each in calls)


def _count(value: Any) -> int:
    """A number of tokens: a bound that a negative one, or one that no answer can have, could lift or end is none."""
    return min(max(value, 0), _MOST_TOKENS) if isinstance(value, int) else 0


def _delta(delta: Any) -> str:
    said = getattr(delta, "text", None) or getattr(delta, "partial_json", None) or getattr(delta, "thinking", "")
    return said if isinstance(said, str) else ""
