"""Text edits, and how people read them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class EditRefusedError(ValueError):
    """No edit is made. `str()` is one sentence for a person: why, where, what to do."""


class StaleClassError(EditRefusedError):
    """The class is no longer the one that was proved."""


@dataclass(frozen=True, order=True)
class Edit:
    """Characters start to end are replaced by text."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap, all counted in the original text."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def unified_diff(before: str, after: str, path: str) -> str:
    """A patch that `patch -p1` and `git apply` take; empty when nothing changed."""
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])
