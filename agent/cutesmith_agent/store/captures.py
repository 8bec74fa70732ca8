"""How a project's classes were built and called in real runs, as `cutesmith capture` recorded them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cutesmith_agent.store import clock
from cutesmith_agent.store.location import file_key
from cutesmith_agent.store.reading import reading
from cutesmith_evaluator.text import printable

_LONGEST = 160  # characters of a signature in words


@dataclass(frozen=True)
class CapturedCall:
    """Calls of one signature. `text`: constructor and arguments as JSON, without values (`evaluator/…/captured.py`).

    `training`, `grad`: how many of the `calls` were in training mode, and with gradients enabled."""

    text: str
    calls: int
    training: int = 0
    grad: int = 0

    @property
    def is_usable(self) -> bool:
        """Whether the call can be made again: objects of other kinds cannot."""
        return '"opaque"' not in self.text

    @property
    def words(self) -> str:
        """Its arguments in a few words: "(4, 16) float32, True"."""
        data = json.loads(self.text)
        named = [f"{name}={_words(each)}" for name, each in data["kwargs"].items()]
        return printable(", ".join([*map(_words, data["args"]), *named]), _LONGEST) or "no arguments"


@dataclass(frozen=True)
class CapturedTime:
    """Seconds in a class's calls, and in those of the outermost modules of the same processes; `calls` were timed."""

    seconds: float
    outer_s: float
    calls: int

    @property
    def share(self) -> float:
        """Of the forward passes' time, 0 to 1."""
        return min(1.0, self.seconds / self.outer_s) if self.outer_s > 0 else 0.0


@dataclass(frozen=True)
class Capture:
    """What one run recorded of a class; `calls` are most frequent first. `at` is in seconds since the epoch."""

    file: str
    qualname: str
    calls: tuple[CapturedCall, ...]
    time: CapturedTime | None = None
    at: float = 0.0

    @property
    def usable(self) -> tuple[CapturedCall, ...]:
        return tuple(call for call in self.calls if call.is_usable)


class Captures:
    """The captures of a store: one a class, of the last run that had it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, captures: Sequence[Capture]) -> None:
        """In place of what earlier runs recorded of these classes; `at` is set to now."""
        now = clock.now(self._connection)
        rows = [(file_key(one.file), one.qualname, _to_text(one), now) for one in captures]
        self._connection.executemany(
            "INSERT OR REPLACE INTO captures (file, qualname, record, at) VALUES (?, ?, ?, ?)", rows
        )

    @reading("captures")
    def of(self, file: str, qualname: str | None = None) -> tuple[Capture, ...]:
        """Of a file's classes, or of one."""
        rows = self._connection.execute(
            "SELECT file, qualname, record, at FROM captures WHERE file = ? AND (? IS NULL OR qualname = ?)",
            (file_key(file), qualname, qualname),
        )
        return tuple(_from_row(*row) for row in rows)

    def files(self) -> tuple[str, ...]:
        rows = self._connection.execute("SELECT DISTINCT file FROM captures ORDER BY file")
        return tuple(file for (file,) in rows)


def _to_text(capture: Capture) -> str:
    timing = vars(capture.time) if capture.time else None
    return json.dumps({"calls": [vars(call) for call in capture.calls], "time": timing})


def _from_row(file: str, qualname: str, record: str, at: float) -> Capture:
    data = json.loads(record)
    timing = CapturedTime(**data["time"]) if data["time"] else None
    return Capture(file, qualname, tuple(CapturedCall(**each) for each in data["calls"]), timing, at)


def _words(spec: dict[str, Any]) -> str:
    ((kind, what),) = spec.items()
    match kind:
        case "tensor":
            return f"{tuple(what['shape'])} {what['dtype']}{_layout(what)}"
        case "list" | "tuple":
            return f"[{', '.join(map(_words, what))}]"
        case "dict":
            return "{" + ", ".join(f"{name}: {_words(each)}" for name, each in what.items()) + "}"
        case "opaque":
            return f"a {what}"
        case _:
            return str(what)


def _layout(tensor: dict[str, Any]) -> str:
    """Strides where they are not those of a contiguous tensor."""
    step, strides = 1, []
    for size in reversed(tensor["shape"]):
        strides.append(step)
        step *= max(size, 1)
    is_contiguous = all(
        size == 1 or have == want
        for size, have, want in zip(tensor["shape"], tensor["strides"], reversed(strides), strict=True)
    )
    return "" if is_contiguous else f" strides {tuple(tensor['strides'])}"
