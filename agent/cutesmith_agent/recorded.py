"""What the processes of a captured run have written, read into one capture a class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutesmith_agent.store.captures import Capture, CapturedCall, CapturedTime

_MOST = 64  # signatures of a class that are kept, the most frequent


@dataclass
class _Found:
    counts: dict[str, list[int]] = field(default_factory=dict)  # by a call's text: calls, in training, with gradients
    seconds: float = 0.0
    outer_s: float = 0.0
    timed: int = 0


def read_recorded(folder: Path) -> tuple[Capture, ...]:
    """Of the classes that were called, by file and name. Lines that a killed process left broken are passed over."""
    found: dict[tuple[str, str], _Found] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in _last_lines(path):
            _add(found.setdefault((line["file"], line["class"]), _Found()), line)
    return tuple(_capture(*key, each) for key, each in sorted(found.items()) if each.counts)


def _last_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The last on each signature and each class's time: counts only grow. A program may write there what it likes."""
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
            f"{line['file']}{line['class']}".encode()  # a store holds no other names
            _add(_Found(), line)
            last[line["file"], line["class"], line.get("number")] = line
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    yield from last.values()


def _add(found: _Found, line: dict[str, Any]) -> None:
    if "seconds" in line:
        found.seconds += line["seconds"]
        found.outer_s += line["outer_s"]
        found.timed += line["timed"]
        return
    what = {name: line[name] for name in ("init", "args", "kwargs", "dtype")}
    counts = found.counts.setdefault(json.dumps(what, sort_keys=True), [0, 0, 0])
    for place, is_counted in enumerate((True, line["training"], line["grad"])):
        counts[place] += line["calls"] if is_counted else 0


def _capture(file: str, qualname: str, found: _Found) -> Capture:
    calls = [CapturedCall(text, *counts) for text, counts in found.counts.items()]
    calls.sort(key=lambda call: (-call.calls, call.text))
    time = CapturedTime(found.seconds, found.outer_s, found.timed) if found.timed else None
    return Capture(file, qualname, tuple(calls[:_MOST]), time)
