"""The part of a file that a class depends on: what is shown of it to somebody else."""

from __future__ import annotations

from itertools import pairwise

from cutesmith_agent.source.fingerprint import used_by
from cutesmith_agent.source.outline import class_nodes
from cutesmith_agent.source.parsing import parse

_IMPORTS = ("import_statement", "import_from_statement")


def excerpt(text: str, qualname: str) -> str:
    """The class, the top-level definitions it uses, and the file's imports, in the file's order.

    `text` has no kernel of ours in the class. Empty when there is no such class."""
    source = parse(text)
    found = [item.node for item in class_nodes(source) if item.qualname == qualname]
    if not found:
        return ""
    imports = [node for node in source.statements() if node.type in _IMPORTS]
    spans = {(span.start, span.end) for span in map(source.span, (*imports, *used_by(source, found), *found))}
    outer = sorted(span for span in spans if not any(_is_within(span, other) for other in spans))
    pieces = [_dedented(text, *span) for span in outer]
    gaps = ["\n" if "\n" not in one + other else "\n\n\n" for one, other in pairwise(pieces)]
    return "".join(piece + gap for piece, gap in zip(pieces, [*gaps, "\n"], strict=True))


def _is_within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def _dedented(text: str, start: int, end: int) -> str:
    """A nested class is shown at the margin."""
    margin = start - (text.rfind("\n", 0, start) + 1)
    lines = text[start:end].split("\n")
    return "\n".join([lines[0], *(line[margin:] if not line[:margin].strip() else line for line in lines[1:])])
