"""What accepting and removing a kernel change on disk: the module's edits and its kernel file.

Planned here for the editor (as a WorkspaceEdit) and for the command line (written by itself) alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.source.adoption import adopt_if_unchanged
from cutesmith_agent.source.adoption import remove as remove_guard
from cutesmith_agent.source.edits import Edit, EditRefusedError
from cutesmith_agent.source.naming import is_in_package
from cutesmith_agent.store.location import real_path
from cutesmith_agent.subject import candidate_id
from cutesmith_server.drift import content_id
from cutesmith_server.outlines import Outline
from cutesmith_server.records import IsOurs
from cutesmith_server.report import KernelFile

_SKIPPED = {"node_modules", "__pycache__", "site-packages", "build", "dist", "venv"}
_SEARCH_S = 2.0


@dataclass(frozen=True)
class Change:
    """A module's edits, and its kernel file: to be written with `write`, deleted, or (neither) left alone: `kept` says
    why, where it is there."""

    module: Path
    edits: tuple[Edit, ...]
    kernel: Path
    write: str | None = None
    delete: bool = False
    kept: str = ""


def accepting(
    module: Path, outline: Outline, qualname: str, kernel: KernelFile, *, proved: str, is_ours: IsOurs
) -> Change:
    """Raises EditRefusedError when the class is not the proved one any more, or the kernel's file is somebody's."""
    path = Path(kernel.path)
    text = outline.source.text
    edits = adopt_if_unchanged(text, qualname, path.stem, relative=is_in_package(module), proved=proved)
    present = content_id(path)
    if present is None and (path.exists() or path.is_symlink()):
        raise EditRefusedError(f"{path} is no file that can be read: move it away or delete it, then accept again.")
    if present is not None and present != candidate_id(kernel.source) and not is_ours(present):
        raise EditRefusedError(
            f"{path.name} exists and is not as CuteSmith wrote it: move it away or delete it, then accept again."
        )
    if not os.access(path.parent, os.W_OK):
        raise EditRefusedError(f"The folder {path.parent} is read-only: the kernel's file cannot be written there.")
    return Change(module, edits, path, write=None if present == candidate_id(kernel.source) else kernel.source)


def removing(
    module: Path, outline: Outline, qualname: str, *, user_of: Callable[[str], str], is_ours: IsOurs
) -> Change:
    """The kernel's file goes too, unless somebody changed it or another file uses it (`user_of`: which, by the kernel's
    name). Raises EditRefusedError."""
    found = outline.named(qualname)
    if found is None or found.kernel is None:
        raise EditRefusedError(f"{qualname} has no CuTe kernel to remove.")
    edits = remove_guard(outline.source.text, qualname, found.kernel)
    path = module.with_name(f"{found.kernel}.py")
    present = content_id(path)
    if present is None:
        return Change(module, edits, path)
    others = (each.qualname for each in outline.classes if each.kernel == found.kernel and each.qualname != qualname)
    if not is_ours(present):
        return Change(module, edits, path, kept="it is not as CuteSmith wrote it")
    user = next(others, "") or user_of(found.kernel)
    return Change(module, edits, path, delete=not user, kept=f"{user} uses it" if user else "")


def user_elsewhere(module: Path, root: Path, kernel: str) -> str:
    """A Python file other than the module and the kernel that names the kernel; "" where there is none. It takes
    seconds in a large project, of which not all may be read."""
    deadline = time.monotonic() + _SEARCH_S
    word = kernel.encode()
    top = root if module.is_relative_to(root) else module.parent
    for path in python_files(top):
        if time.monotonic() > deadline:
            return f"perhaps a file of {top}, which is too large to look through,"
        if word in read_if_file(path) and real_path(path) not in (module, module.with_name(f"{kernel}.py")):
            return str(path.relative_to(top))
    return ""


def python_files(root: Path) -> Iterator[Path]:
    """Of a project: what is installed or built in it aside, and hidden folders."""
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in _SKIPPED and not name.startswith(".")]
        yield from (Path(folder, name) for name in files if name.endswith(".py"))


def read_if_file(path: Path) -> bytes:
    """b"" of what is no file that can be read."""
    try:
        return path.read_bytes() if path.is_file() else b""  # reading a pipe may never end
    except OSError:
        return b""
