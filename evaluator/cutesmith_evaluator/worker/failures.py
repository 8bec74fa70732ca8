"""What the user's code does wrong, turned into findings."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cutesmith_evaluator.types import Finding

_TEXT_LIMIT = 10_000  # characters
_MET = "Developer debug context: "  # of a graph break
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


class TaskError(Exception):
    """The task cannot go on; `finding` says why to the person who wrote the code."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@contextmanager
def user_code(kind: str, doing: str, file: Path) -> Iterator[None]:
    """Runs code of the user's: whatever it raises becomes a TaskError of this kind, placed in `file` where possible.

    `doing` completes "… failed while <doing>", for example "constructing NewGELU".
    """
    try:
        yield
    except TaskError:
        raise
    except BaseException as error:  # user code may raise anything
        raise TaskError(finding_of(error, kind, doing, file)) from error


def finding_of(error: BaseException, kind: str, doing: str, file: Path) -> Finding:
    """The finding for an exception that the user's code let out; of one that cannot be looked at, its type's."""
    try:
        return _finding_of(error, kind, doing, file)
    except BaseException:  # noqa: BLE001 - its attributes may be code, too
        return Finding(kind, f"{file.name} failed while {doing}: {_type_name(error)}.", None, str(file))


def _finding_of(error: BaseException, kind: str, doing: str, file: Path) -> Finding:
    is_syntax = issubclass(type(error), SyntaxError)  # isinstance would ask the exception's __class__
    line = error.lineno if is_syntax and _same(error.filename, file) else line_in(error, file)  # type: ignore[attr-defined]
    place = f"{file.name}:{line}" if line else file.name
    if issubclass(type(error), SystemExit):
        message = f"{place} ends the process while {doing}; move that call under `if __name__ == '__main__':`."
        return Finding("exits", message, line, str(file))
    if issubclass(type(error), MemoryError) or any(words in text_of(error) for words in _OUT_OF_MEMORY):
        message = f"Memory ran out while {doing} ({place}); use smaller sizes or raise the worker's memory limit."
        return Finding("out-of-memory", message, line, str(file))
    if issubclass(type(error), RecursionError):
        limit = sys.getrecursionlimit()
        message = f"{place} calls itself more than {limit} times deep while {doing}; end the recursion."
        return Finding(kind, message, line, str(file))
    if is_syntax and line:
        return Finding("syntax-error", f"{place} does not parse: {error.msg}.", line, str(file))  # type: ignore[attr-defined]
    return Finding(kind, f"{place} failed while {doing}: {summary(error)}", line, str(file))


def line_in(error: BaseException, file: Path) -> int | None:
    """1-based line of the innermost frame in `file`, or None."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if _same(frame.filename, file)), None)


def summary(error: BaseException) -> str:
    """Type and first line of an exception's text, short enough for one sentence; with what torch.compile met."""
    text = text_of(error).strip().splitlines()
    met = next((line.strip()[len(_MET) :][:200] for line in text[1:] if line.strip().startswith(_MET)), "")
    return f"{_type_name(error)}: {text[0][:300]}{f' ({met})' if met else ''}" if text else _type_name(error)


def text_of(error: BaseException) -> str:
    """What an exception says, its first characters; "" where asking it raises."""
    try:
        return str.__getitem__(str(error), slice(0, _TEXT_LIMIT))
    except BaseException:  # noqa: BLE001 - __str__ is the user's code
        return ""


def _type_name(error: BaseException) -> str:
    """Past a metaclass that answers for it."""
    return type.__dict__["__name__"].__get__(type(error))[:100]


def _same(name: str | None, file: Path) -> bool:
    return name is not None and Path(name).resolve() == file.resolve()
