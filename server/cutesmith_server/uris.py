"""File URIs and paths. Two spellings of one URI ("%3A" and ":"), and a link and its file, lead to one path, so state is
kept by path."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from cutesmith_agent.store.location import real_path


def to_path(uri: str) -> Path | None:
    """The file that a URI names, links followed; None for what is no file on disk."""
    named = named_path(uri)
    return None if named is None else real_path(named)


def named_path(uri: str) -> Path | None:
    """The path as a URI spells it; None for untitled buffers, notebook cells and remote schemes."""
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
