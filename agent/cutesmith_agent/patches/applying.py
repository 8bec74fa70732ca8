"""A patch applied to a candidate: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cutesmith_agent.patches import refusing
from cutesmith_agent.patches.patch import Patch
from cutesmith_agent.patches.placing import Unplaced, place
from cutesmith_agent.patches.text import Text
from cutesmith_agent.source.edits import Edit, apply_edits
from cutesmith_agent.source.positions import Span
from cutesmith_agent.source.syntax import syntax_problem


@dataclass(frozen=True)
class Applied:
    """`source`: the patched text. `edits`: what was done to the old one, in the patch's order."""

    source: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Refused:
    """`text` is for the model: what is wrong with which edit, the lines it may mean, what would have applied."""

    text: str


def apply(source: str, patch: Patch) -> Applied | Refused:
    """The patched source, or why no part of the patch was applied.

    Every edit is placed in the text as it is before the patch. The result parses as Python and differs from it."""
    text = Text(source)
    placed = [place(text, change) for change in patch.changes]
    edits = [(number, each) for number, each in enumerate(placed, 1) if isinstance(each, Edit)]
    problems = [
        refusing.unplaced(text, number, change, each)
        for number, (change, each) in enumerate(zip(patch.changes, placed, strict=True), 1)
        if isinstance(each, Unplaced)
    ]
    problems += _overlaps(text, edits)
    if problems:
        return Refused("\n\n".join((*problems, refusing.would_apply(text, edits))))
    return _applied(source, text, edits)


def _overlaps(text: Text, edits: Sequence[tuple[int, Edit]]) -> list[str]:
    ordered = sorted(edits, key=lambda each: (each[1].start, each[1].end))
    return [
        refusing.overlapping(text, min(one, other), max(one, other), Span(first.start, max(first.end, second.end)))
        for (one, first), (other, second) in pairwise(ordered)
        if second.start < first.end or second.start == first.start
    ]


def _applied(source: str, text: Text, edits: Sequence[tuple[int, Edit]]) -> Applied | Refused:
    patched = apply_edits(source, (edit for _, edit in edits))
    if patched == source:
        return Refused("The patch changes nothing: every `replace` equals what stands there.")
    problem = syntax_problem(patched)
    if problem is not None:
        told = refusing.unparsed(patched, *problem)
        return Refused(f"{told}\n\n{refusing.would_apply(text, edits)}")
    return Applied(patched, tuple(edit for _, edit in edits))
