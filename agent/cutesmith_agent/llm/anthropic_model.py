"""The Anthropic SDK as a ChatModel: streamed, its fixed part cached, retried by the SDK before an answer begins."""

from __future__ import annotations

import time
from typing import Any

import anthropic
import httpx2
from anthropic.lib.streaming import MessageStream

from cutesmith_agent.llm.catalogue import known
from cutesmith_agent.llm.port import ModelUnavailableError, OnProgress, Part, Prompt, Reply, ToolCall, Usage
from cutesmith_agent.llm.settings import KEY_NAME, ModelSettings
from cutesmith_agent.llm.tools import TOOLS

_CONNECT_S = 10.0
_MOST_CHARACTERS_PER_TOKEN = 8  # more than this is no answer of the length that was asked for
_CHARACTERS_PER_TOKEN = 3.0  # of what had arrived of an answer that broke off, when no count of its tokens came


class AnthropicModel:
    """The Messages API at `settings.base_url`. The key is held by the SDK's client and shown nowhere."""

    def __init__(self, settings: ModelSettings, key: str) -> None:
        self._settings = settings
        timeout = anthropic.Timeout(settings.silence_s, connect=_CONNECT_S)
        self._client = anthropic.Anthropic(
            api_key=key, base_url=settings.base_url, max_retries=settings.retries, timeout=timeout
        )

    @property
    def name(self) -> str:
        return self._settings.model

    def ask(self, prompt: Prompt, *, max_tokens: int, deadline_s: float, on_progress: OnProgress) -> Reply:
        """Raises ModelUnavailableError when no answer began; what breaks off later is a Reply with a problem."""
        answer = _Answer(time.monotonic() + deadline_s, max_tokens * _MOST_CHARACTERS_PER_TOKEN, on_progress)
        try:
            with self._client.messages.stream(**self._request(prompt, max_tokens)) as stream:
                answer.read(stream)
        except anthropic.APIStatusError as error:
            if not answer.began:
                raise ModelUnavailableError(self._refusal(error)) from None
            answer.problem = f"broke off ({error.api_message or error.message})"
        except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
            if not answer.began:
                raise ModelUnavailableError(self._unreachable(error)) from None
            answer.problem = f"broke off ({_words(error)})"
        except ValueError as error:  # the SDK's word for tool input, or a line of the stream, that is no JSON
            answer.problem = f"was not valid JSON ({str(error).partition(' JSON: ')[0][:200]})"
        return answer.reply()

    def _request(self, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        return {
            "model": self.name,
            "max_tokens": max_tokens,
            "system": list(map(_block, prompt.system)),
            "messages": [{"role": "user", "content": list(map(_block, prompt.user))}],
            "tools": list(TOOLS[prompt.desk]),
            **self._thinking(max_tokens),
        }

    def _thinking(self, max_tokens: int) -> dict[str, Any]:
        """As the model takes it; one that the table does not know is left to its own ways."""
        entry = known(self.name)
        if entry is None:
            return {}
        if entry.thinking == "adaptive":
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": self._settings.effort}}
        budget = min(self._settings.thinking_tokens, max_tokens // 2)
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}

    def _refusal(self, error: anthropic.APIStatusError) -> str:
        host, reason = self._settings.host, error.api_message or error.message
        said = f"{host} answered {error.status_code}: {reason.rstrip('.')}"
        if error.status_code in (401, 403):
            return f"{said}; check {KEY_NAME}."
        if error.status_code == 404:
            return f"{said}; check the model {self.name} (CUTESMITH_MODEL) and the address (CUTESMITH_BASE_URL)."
        if error.status_code in (408, 409, 429) or error.status_code >= 500:
            return f"{said}, and did so {self._settings.retries + 1} times; try later with --resume, nothing is lost."
        return f"{said}."

    def _unreachable(self, error: Exception) -> str:
        host = self._settings.host
        return f"{host} cannot be reached ({_words(error)}); recipes work offline, and --resume goes on later."


class _Answer:
    """What has arrived of an answer."""

    def __init__(self, deadline: float, longest: int, on_progress: OnProgress) -> None:
        self._deadline, self._longest = deadline, longest
        self._progress = on_progress
        self._stream: MessageStream | None = None
        self._characters = 0
        self.problem: str | None = None

    @property
    def began(self) -> bool:
        return self._stream is not None

    def read(self, stream: MessageStream) -> None:
        shown = 0
        for event in stream:
            if event.type == "message_start":
                self._stream = stream
            if event.type == "content_block_delta":
                self._characters += len(_delta(event.delta))
            if self._characters >= shown + 4_000:
                shown = self._characters
                self._progress(f"the model is answering: about {self._characters / _CHARACTERS_PER_TOKEN:,.0f} tokens")
            if time.monotonic() > self._deadline:
                self.problem = "took too long"
                return
            if self._characters > self._longest:
                self.problem = "was longer than it may be"
                return

    def reply(self) -> Reply:
        """Only a whole answer counts: the SDK makes sense of half a JSON value too."""
        if self._stream is None:
            return Reply("", problem=self.problem or "never began")
        message = self._stream.current_message_snapshot
        problem = self.problem or (None if message.stop_reason else "broke off before its end")
        calls = () if problem else tuple(ToolCall(b.name, b.input) for b in message.content if b.type == "tool_use")
        text = "".join(block.text for block in message.content if block.type == "text")
        return Reply(message.stop_reason or "", text, calls, self._usage(message, whole=problem is None), problem)

    def _usage(self, message: Any, *, whole: bool) -> Usage:
        counts = message.usage
        guess = 0 if whole else round(self._characters / _CHARACTERS_PER_TOKEN)
        return Usage(
            _count(counts.input_tokens),
            _count(counts.cache_creation_input_tokens),
            _count(counts.cache_read_input_tokens),
            max(_count(counts.output_tokens), guess),
        )


def _count(value: Any) -> int:
    """The SDK takes what a server sends as it comes; a bound that a negative number could lift is none."""
    return max(value, 0) if isinstance(value, int) else 0


def _block(part: Part) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": part.text}
    return {**block, "cache_control": {"type": "ephemeral"}} if part.cached else block


def _delta(delta: Any) -> str:
    return getattr(delta, "text", None) or getattr(delta, "partial_json", None) or getattr(delta, "thinking", "") or ""


def _words(error: Exception) -> str:
    """The lowest cause has the reason: "[Errno 111] Connection refused"."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return str(cause) or type(cause).__name__
