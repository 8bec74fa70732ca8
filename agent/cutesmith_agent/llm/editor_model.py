"""A language model of the editor's as a ChatModel: no key of ours, its provider's own account and consent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from cutesmith_agent.llm.editor_link import EditorLink, EditorLinkError
from cutesmith_agent.llm.port import ModelUnavailableError, OnProgress, Part, Prompt, Reply, ToolCall, Usage
from cutesmith_agent.llm.tools import TOOLS

_MOST_CHARACTERS_PER_TOKEN = 8  # more than this is no answer of the length that was asked for
_MOST_TOKENS = 10_000_000  # of one call


class EditorModel:
    """The model that the editor named `name`."""

    def __init__(self, link: EditorLink, name: str) -> None:
        self._link, self._name = link, name

    @property
    def name(self) -> str:
        return self._name

    def ask(self, prompt: Prompt, *, max_tokens: int, deadline_s: float, on_progress: OnProgress) -> Reply:
        """Raises ModelUnavailableError when no answer began; what breaks off later is a Reply with a problem."""
        on_progress(f"asking {self._name} through the editor")
        params = {
            "model": self._name,
            "system": _joined(prompt.system),
            "user": _joined(prompt.user),
            "tools": list(TOOLS[prompt.desk]),
            "maxTokens": max_tokens,
        }
        try:
            told = self._link.ask("chat", params, deadline_s)
        except EditorLinkError as error:
            message = f"{str(error).rstrip('.')}; recipes work without a model, and --resume goes on later."
            raise ModelUnavailableError(message, may_cost=error.may_cost) from None
        return _reply(told, prompt, max_tokens)


def _joined(parts: Iterable[Part]) -> str:
    return "\n\n".join(part.text for part in parts)


def _reply(told: dict[str, Any], prompt: Prompt, max_tokens: int) -> Reply:
    text, problem = told.get("text"), told.get("problem")
    calls = _calls(told.get("calls"))
    if not isinstance(text, str) or calls is None or not (problem is None or isinstance(problem, str)):
        return Reply("", problem="is not as editors give answers", is_counted=False)
    written = len(text) + sum(len(json.dumps(call.input)) for call in calls)
    if written > max_tokens * _MOST_CHARACTERS_PER_TOKEN:
        problem = "was longer than it may be"
    stop = "tool_use" if calls else "end_turn"
    return Reply(stop, text, () if problem else calls, _usage(told.get("usage"), prompt, written), problem)


def _calls(value: Any) -> tuple[ToolCall, ...] | None:
    """None where they make no sense."""
    if not isinstance(value, list):
        return None
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in value):
        return None
    return tuple(ToolCall(one["name"], one.get("input")) for one in value)


def _usage(value: Any, prompt: Prompt, written: int) -> Usage:
    """As the editor counts, but never less than such texts can be: a count too low could lift a bound."""
    told = value if isinstance(value, dict) else {}
    read = sum(len(part.text) for part in prompt.parts)
    return Usage(input=_count(told.get("input"), read), output=_count(told.get("output"), written))


def _count(value: Any, characters: int) -> int:
    least = -(-characters // _MOST_CHARACTERS_PER_TOKEN)
    return min(max(value, least), _MOST_TOKENS) if isinstance(value, int) else max(1, characters // 2)
