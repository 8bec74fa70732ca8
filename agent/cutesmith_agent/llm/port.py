"""What the agent needs of a language model. `anthropic_model.AnthropicModel` is one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

OnProgress = Callable[[str], None]
Desk = Literal["kernel", "description"]


@dataclass(frozen=True)
class Part:
    """A piece of a prompt. `cached`: the prompt up to and with it recurs, and is worth keeping on the server."""

    text: str
    cached: bool = False


@dataclass(frozen=True)
class Prompt:
    """One request: `system` and one user message, in parts. What recurs comes first. `desk`: which tools it offers."""

    system: tuple[Part, ...]
    user: tuple[Part, ...]
    desk: Desk = "kernel"

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.system, *self.user)

    def digest(self, model: str) -> str:
        """SHA-256 (hex) of the prompt and the model it is for."""
        text = json.dumps([model, {"system": list(map(asdict, self.system)), "user": list(map(asdict, self.user))}])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Usage:
    """Tokens of a call. `input` was read at full price, `cache_write` kept for later, `cache_read` found kept."""

    input: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0

    @property
    def uncached(self) -> int:
        """Input tokens that the model had to read anew."""
        return self.input + self.cache_write

    @property
    def total(self) -> int:
        return self.input + self.cache_write + self.cache_read + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(mine + others for mine, others in zip(_counts(self), _counts(other), strict=True)))


def _counts(usage: Usage) -> tuple[int, int, int, int]:
    return usage.input, usage.cache_write, usage.cache_read, usage.output


@dataclass(frozen=True)
class ToolCall:
    """A tool the model called, with the JSON value it passed."""

    name: str
    input: Any


@dataclass(frozen=True)
class Reply:
    """An answer. `stop` is the API's stop reason ("tool_use", "max_tokens", "refusal", ...).

    `problem`: why it is not whole, in words that fit after "the answer": what did arrive then counts for nothing.
    `is_counted` false: the usage was never told, though the model may have begun."""

    stop: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    problem: str | None = None
    is_counted: bool = True


class ModelUnavailableError(Exception):
    """The model cannot be asked, and asking again now would not help. `str()` is one sentence for a person.

    `may_cost`: it may have begun to work on what it was asked."""

    def __init__(self, message: str, *, may_cost: bool = False) -> None:
        super().__init__(message)
        self.may_cost = may_cost


class ChatModel(Protocol):
    """A model. `ask` raises ModelUnavailableError; an answer that broke off or cannot be read is a Reply with a
    `problem`, since its tokens are spent."""

    @property
    def name(self) -> str: ...

    def ask(self, prompt: Prompt, *, max_tokens: int, deadline_s: float, on_progress: OnProgress) -> Reply: ...
