"""Whether what was proved of an accepted kernel still holds: its file, and its class, are as they were then."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from cutesmith_server.jobs import ClassKey

if TYPE_CHECKING:
    from cutesmith_agent.source.outline import ModuleClass
    from cutesmith_agent.store.rows import Decision


def drift_of(key: ClassKey, found: ModuleClass, accepted: Decision | None, digest: str | None) -> str:
    """One sentence on what has changed since the proof, or ""."""
    kernel = key.path.with_name(f"{found.kernel}.py")
    present = content_id(kernel)
    if present is None:
        return f"{kernel.name} is missing, so {key.path.name} cannot be imported: restore it, or remove the kernel."
    if accepted is None:
        return ""
    if accepted.candidate != present:
        return f"{kernel.name} was edited since it was proved: its verdict is no longer that of the file. Validate it."
    if accepted.class_hash not in (None, digest):
        return (
            f"{key.qualname} has changed since its kernel was proved, which forward still calls: generate the kernel "
            "again, or remove it."
        )
    return ""


def content_id(path: Path) -> str | None:
    """The candidate id a file's content has, line ends aside; None when there is no readable file."""
    if not path.is_file():
        return None
    try:
        return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()[:12]
    except OSError:
        return None
