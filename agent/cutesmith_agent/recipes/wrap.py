"""Long lines of generated source broken at the commas of their outermost brackets."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 108  # of a line within the program function, which is indented by four more
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def wrapped(lines: list[str]) -> list[str]:
    return [short for line in lines for short in _wrap(line)]


def _wrap(line: str) -> Iterator[str]:
    if len(line) <= WIDTH or line.lstrip().startswith(("#", '"""')):
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith("return ") and len(_items(line.strip()[7:])) > 1:
        line = f"{indent}return ({line.strip()[7:]})"
    place = _outermost(line)
    if place is None:
        yield line
        return
    start, end = place
    yield line[: start + 1]
    yield from _packed(_items(line[start + 1 : end]), indent + "    ")
    yield indent + line[end:]


def _outermost(line: str) -> tuple[int, int] | None:
    """The first round bracket that closes near the line's end."""
    for start, sign in enumerate(line):
        if sign == "(":
            end = _closing(line, start)
            if end is not None and len(line) - end <= len(").launch("):
                return start, end
    return None


def _closing(line: str, start: int) -> int | None:
    depth = 0
    for at in range(start, len(line)):
        depth += line[at] in _PAIRS
        depth -= line[at] in _PAIRS.values()
        if depth == 0:
            return at
    return None


def _items(text: str) -> list[str]:
    """The parts between commas outside all brackets."""
    items, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        depth += sign in _PAIRS
        depth -= sign in _PAIRS.values()
        if sign == "," and depth == 0:
            items.append(text[begin:at].strip())
            begin = at + 1
    return [item for item in (*items, text[begin:].strip()) if item]


def _packed(items: list[str], indent: str) -> Iterator[str]:
    """As many items on a line as fit."""
    line = indent
    for item in items:
        if line.strip() and len(line) + len(item) + 2 > WIDTH:
            yield line.rstrip()
            line = indent
        line += f"{item}, "
    yield line.rstrip().rstrip(",") if len(items) == 1 else line.rstrip()
