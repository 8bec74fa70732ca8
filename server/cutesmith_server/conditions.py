"""When a kernel stands in for its module: the reasons that its file's `explain` can give, read without running it."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=64)
def reasons(source: str) -> tuple[str, ...]:
    """Each sentence that `explain` can return, in its order; what is only known at run time is "…" in it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "explain"), None)
    if found is None:
        return ()
    returned = (node.value for node in ast.walk(found) if isinstance(node, ast.Return))
    return tuple(dict.fromkeys(words for each in returned if (words := _words(each))))


def reasons_of_file(path: Path) -> tuple[str, ...]:
    try:
        return reasons(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ()


def _words(value: ast.expr | None) -> str:
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_words(part) or "…" for part in parts)
        case ast.IfExp(body=body, orelse=orelse):
            return _words(body) or _words(orelse)
    return ""
