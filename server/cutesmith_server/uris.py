"""File URIs and paths. Two spellings of one URI ("%3A" and ":") lead to one path, so state is kept by path."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def to_path(uri: str) -> Path | None:
    """The file a URI names; None for untitled buffers, notebook cells and remote schemes."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # "http://[…"
        return None
    path = unquote(parts.path)
    if parts.scheme != "file" or "\0" in path:
        return None
    drive = path[2:3] == ":" and path[:1] == "/"  # /c:/folder/file.py
    return Path(path[1:] if drive else path)


def from_path(path: Path) -> str:
    return path.absolute().as_uri()
