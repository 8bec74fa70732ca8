"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replaces or creates `path` in one step. The mode is the given one, else the old file's, else the umask's.

    A link is followed, so the file it points to changes and the link stays. Raises OSError."""
    path = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.chmod(_mode_of(path) if mode is None else mode)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _mode_of(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
