"""What the user's code does wrong, turned into findings."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cutesmith_evaluator.types import Finding

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
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise TaskError(finding_of(error, kind, doing, file)) from error


def finding_of(error: BaseException, kind: str, doing: str, file: Path) -> Finding:
    """The finding for an exception that the user's code let out."""
    line = error.lineno if isinstance(error, SyntaxError) and _same(error.filename, file) else line_in(error, file)
    place = f"{file.name}:{line}" if line else file.name
    if isinstance(error, SystemExit):
        message = f"{place} ends the process while {doing}; move that call under `if __name__ == '__main__':`."
        return Finding("exits", message, line, str(file))
    if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
        message = f"Memory ran out while {doing} ({place}); use smaller sizes or raise the worker's memory limit."
        return Finding("out-of-memory", message, line, str(file))
    if isinstance(error, SyntaxError) and line:
        return Finding("syntax-error", f"{place} does not parse: {error.msg}.", line, str(file))
    return Finding(kind, f"{place} failed while {doing}: {summary(error)}", line, str(file))


def line_in(error: BaseException, file: Path) -> int | None:
    """1-based line of the innermost frame in `file`, or None."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if _same(frame.filename, file)), None)


def summary(error: BaseException) -> str:
    """Type and first line of an exception's text, short enough for one sentence."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__


def _same(name: str | None, file: Path) -> bool:
    return name is not None and Path(name).resolve() == file.resolve()
