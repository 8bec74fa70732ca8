"""Strings that are put together from constants, so that a name is seen however it is written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from cutesmith_evaluator.guards.values import NOTHING, Several, Text, Values, text_of

METHODS = {
    "lower", "upper", "strip", "lstrip", "rstrip", "replace", "removeprefix", "removesuffix", "title", "swapcase",
    "join", "format",
}  # fmt: skip


def joined(parts: Sequence[Values], separator: str = "") -> Values:
    texts = _texts(parts)
    return NOTHING if texts is None else frozenset({Text(separator.join(texts))})


def percent(template: str, right: Values) -> Values:
    return _filled(lambda texts: template % tuple(texts), _items(right) or [right])


def method(owner: str, name: str, arguments: Sequence[Values]) -> Values:
    """`owner.name(*arguments)`."""
    if name == "join" and len(arguments) == 1:
        text = text_of(arguments[0])
        items = [frozenset({Text(letter)}) for letter in text] if text is not None else _items(arguments[0])
        return joined(items, owner) if items else NOTHING
    return _filled(lambda texts: getattr(owner, name)(*texts), arguments)


def turned(values: Values) -> Values:
    """`reversed(values)`."""
    text = text_of(values)
    if text is not None:
        return frozenset({Text(text[::-1])})
    return frozenset({Several(tuple(reversed(value.items))) for value in values if isinstance(value, Several)})


def _items(values: Values) -> Sequence[Values]:
    found = [value.items for value in values if isinstance(value, Several)]
    return found[0] if len(found) == 1 else ()


def _texts(parts: Sequence[Values]) -> list[str] | None:
    texts = [text_of(part) for part in parts]
    return None if any(text is None for text in texts) else [text for text in texts if text is not None]


def _filled(fill: Callable[[list[str]], str], parts: Sequence[Values]) -> Values:
    texts = _texts(parts)
    if texts is None:
        return NOTHING
    try:
        return frozenset({Text(fill(texts))})
    except (TypeError, ValueError, IndexError, KeyError):
        return NOTHING


def has_number(node: ast.AST) -> bool:
    """Whether a call is given one that is written out."""
    return isinstance(node, ast.Call) and any(isinstance(each, ast.Constant) for each in ast.walk(node))
