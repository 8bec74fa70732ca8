"""The project's other files that a module's file imports: a proof holds while their code is what it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from cutesmith_agent.source.fingerprint import file_hash

_GONE = ""


def hashes(files: Iterable[str]) -> dict[str, str]:
    """By path. Comments, layout and kernels that were taken in do not count."""
    return {file: _hash_of(Path(file)) for file in files}


def changed_file(recorded: Mapping[str, str]) -> Path | None:
    """The first file whose code is another than it was; None where all are the same."""
    return next((Path(file) for file, known in recorded.items() if _hash_of(Path(file)) != known), None)


def _hash_of(file: Path) -> str:
    try:
        status = file.stat()
        return _hash(file, status.st_mtime_ns, status.st_size)
    except OSError:
        return _GONE


@lru_cache(maxsize=4096)
def _hash(file: Path, mtime_ns: int, size: int) -> str:
    """The stamp says when the file has to be read again."""
    return file_hash(file.read_bytes())
