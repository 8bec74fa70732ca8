"""The kernels that a project's code hands over to, found by the guards in it: a fresh clone has no store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.store.location import real_path
from cutesmith_server.changes import python_files, read_if_file
from cutesmith_server.outlines import Outline, outline_of

_GUARD = b".supports("


@dataclass(frozen=True)
class Adopted:
    """A class with a kernel. `digest`: the class's hash, which a proof is bound to."""

    path: Path
    qualname: str
    kernel: Path
    digest: str | None


def adopted_kernels(root: Path) -> Iterator[Adopted]:
    """By file. Files that Python could not read either are passed over."""
    seen: set[Path] = set()
    for path in map(real_path, sorted(python_files(root))):
        if path not in seen and _GUARD in (data := read_if_file(path)):
            seen.add(path)  # a link to it follows, perhaps
            yield from _of_file(path, data)


def _of_file(path: Path, data: bytes) -> Iterator[Adopted]:
    try:
        outline: Outline = outline_of(data)
    except (UnicodeDecodeError, SyntaxError):
        return
    for found in outline.classes:
        if found.kernel is not None and not found.is_duplicate:
            kernel = path.with_name(f"{found.kernel}.py")
            yield Adopted(path, found.qualname, kernel, outline.digest(found.qualname))
