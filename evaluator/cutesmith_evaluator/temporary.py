"""Temporary folders that do not outlive their process, even one that was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "cutesmith-scratch-"
_LOCK = "lock"  # held while the folder's process lives


class TemporaryFolder:
    """`path`: an empty folder of this process's own, until `close`."""

    def __init__(self) -> None:
        self._outer = Path(tempfile.mkdtemp(prefix=_PREFIX))
        new = self._outer / f"{_LOCK}.new"
        self._lock = new.open("w")
        with suppress(OSError):  # a file system without locks: nobody can tell that the folder is abandoned
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(self._outer / _LOCK)  # seen by others only once it is held
        self.path = self._outer / "files"
        self.path.mkdir()

    def free_bytes(self) -> int:
        """Of the file system that the folder is on."""
        try:
            return shutil.disk_usage(self.path).free
        except OSError:  # the folder is gone
            return 0

    def close(self) -> None:
        shutil.rmtree(self._outer, ignore_errors=True)
        self._lock.close()


def remove_abandoned() -> None:
    """Removes this user's temporary folders whose processes are dead."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # held, or gone already
            if folder.lstat().st_uid == os.getuid():
                _remove_unless_held(folder)


def _remove_unless_held(folder: Path) -> None:
    """Raises OSError when a living process holds it, or it has no lock (yet)."""
    with (folder / _LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
