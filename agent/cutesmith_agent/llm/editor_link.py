"""Questions of the agent to the editor, through whoever started it: events out, the lines of stdin after the job in."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Literal

What = Literal["model", "chat"]
_LONGEST_NAME = 200  # characters: it is shown in a question
_GRACE_S = 5.0  # for whoever started us to say itself that the time was up


class EditorLinkError(Exception):
    """The editor did not answer. `str()` is one sentence for a person; `may_cost`: its model may have begun."""

    def __init__(self, message: str, *, may_cost: bool) -> None:
        super().__init__(message)
        self.may_cost = may_cost


@dataclass(frozen=True)
class EditorModelName:
    """A model of the editor: its name, and who provides it."""

    name: str
    provider: str


def lines_from(descriptor: int) -> Iterator[bytes]:
    """The lines that come through a descriptor. (The interpreter cannot end while a thread reads from `sys.stdin`.)"""
    begun = b""
    while data := os.read(descriptor, 1 << 20):
        *whole, begun = (begun + data).split(b"\n")
        yield from whole
    if begun:
        yield begun


class EditorLink:
    """One question at a time. `answers` is read to its end by a thread of its own, from the first question on."""

    def __init__(self, emit: Callable[[dict[str, Any]], None], answers: Iterable[bytes]) -> None:
        self._emit, self._answers = emit, answers
        self._lines: SimpleQueue[bytes | None] | None = None  # None: no more will come
        self._asked = 0

    def model(self, seconds: float) -> EditorModelName:
        """Which model the editor would ask. Raises EditorLinkError."""
        told = self.ask("model", {}, seconds)
        name, provider = told.get("name"), told.get("provider")
        if not (_is_name(name) and _is_name(provider)):
            raise EditorLinkError("The editor does not say which language model it has.", may_cost=False)
        return EditorModelName(str(name), str(provider))

    def ask(self, what: What, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer, as JSON. Raises EditorLinkError."""
        if self._lines is None:
            self._lines = SimpleQueue()
            threading.Thread(target=self._read, args=(self._lines,), daemon=True).start()
        self._asked += 1
        self._emit({"event": "editor", "id": self._asked, "what": what, "params": params, "seconds": seconds})
        reply = self._reply(self._lines, seconds)
        if isinstance(refused := reply.get("refused"), str):
            raise EditorLinkError(refused, may_cost=reply.get("may_cost") is not False)
        answer = reply.get("answer")
        return answer if isinstance(answer, dict) else {}

    def _read(self, lines: SimpleQueue[bytes | None]) -> None:
        for line in self._answers:
            lines.put(line)
        lines.put(None)

    def _reply(self, lines: SimpleQueue[bytes | None], seconds: float) -> dict[str, Any]:
        """The line with our number: answers to questions that were given up before it may come first."""
        latest = time.monotonic() + seconds + _GRACE_S
        try:
            while (line := lines.get(timeout=max(0.0, latest - time.monotonic()))) is not None:
                if (reply := _object(line)).get("id") == self._asked:
                    return reply
        except Empty:
            raise EditorLinkError(f"The editor did not answer within {seconds:,.0f} s.", may_cost=True) from None
        lines.put(None)
        raise EditorLinkError("The editor cannot be asked any more: the connection to it was closed.", may_cost=True)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
