"""Where a project's store lies: `.cutesmith` in its root, or in the user's state folder when that cannot be.

Editor, command line and agent find it by the file alone: `open_store(workspace_root(file))`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

_MARKERS = (".git", "pyproject.toml")


def workspace_root(file: Path) -> Path:
    """The nearest folder above the file with .git or pyproject.toml; else the file's own."""
    folder = file.absolute().parent
    for candidate in (folder, *folder.parents):
        if any((candidate / marker).exists() for marker in _MARKERS):
            return candidate
    return folder


def file_key(file: str | Path) -> str:
    """The spelling by which a store knows a file: an editor and a shell may reach it through different links."""
    return os.path.realpath(file)


def real_path(file: str | Path) -> Path:
    """The file itself, absolute: a kernel lies beside it, and is imported as it needs, whatever link names it."""
    return Path(file_key(file))


def project_folder(root: Path) -> Path:
    """The store's folder in the project, made if need be. Raises OSError where it cannot be written."""
    folder = root / ".cutesmith"
    folder.mkdir(exist_ok=True)
    return _prepared(folder)


def state_folder(root: Path) -> Path:
    """A folder for this project in the user's state folder (XDG_STATE_HOME), or failing that a temporary one."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    real = Path(file_key(root))
    digest = hashlib.sha256(str(real).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    with suppress(OSError):
        folder = base / "cutesmith" / f"{real.name or 'root'}-{digest}"
        folder.mkdir(parents=True, exist_ok=True)
        return _prepared(folder)
    return temporary_folder()


def temporary_folder() -> Path:
    """A folder that nobody keeps."""
    return _prepared(Path(tempfile.mkdtemp(prefix="cutesmith-")))


def _prepared(folder: Path) -> Path:
    """The folder, once it is known to take files and keeps itself out of git."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    with tempfile.TemporaryFile(dir=folder):
        return folder
