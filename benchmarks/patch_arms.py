"""Ways to apply a patch that are compared: ours, and three that others use. None means refused."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Literal

from diff_match_patch import diff_match_patch

from cutesmith_agent import patches
from cutesmith_agent.patches import Applied, Patch
from patch_corpus import Case

Outcome = Literal["correct", "wrong", "refused"]


def structured(source: str, patch: Patch) -> str | None:
    """CuteSmith's structured patches."""
    result = patches.apply(source, patch)
    return result.source if isinstance(result, Applied) else None


def search_replace(source: str, patch: Patch) -> str | None:
    """The first place that reads exactly as quoted."""
    for change in patch.changes:
        if change.find not in source:
            return None
        source = source.replace(change.find, change.replace, 1)
    return source


def line_numbers(source: str, patch: Patch) -> str | None:
    """As many lines as are quoted, from the given number on; the last edit first, so that numbers stay."""
    lines = source.split("\n")
    for change in sorted(patch.changes, key=lambda each: -(each.near_line or 0)):
        if change.near_line is None or change.near_line > len(lines):
            return None
        first = change.near_line - 1
        lines[first : first + len(change.find.split("\n"))] = change.replace.split("\n")
    return "\n".join(lines)


def match_patch(source: str, patch: Patch) -> str | None:
    """diff-match-patch as it comes: a patch from find to replace, applied near the given line."""
    matcher = diff_match_patch()
    for change in patch.changes:
        made = matcher.patch_make(change.find, change.replace)
        offset = sum(len(line) + 1 for line in source.split("\n")[: (change.near_line or 1) - 1])
        for each in made:
            each.start1, each.start2 = each.start1 + offset, each.start2 + offset
        source, done = matcher.patch_apply(made, source)
        if not all(done):
            return None
    return source


ARMS: dict[str, Callable[[str, Patch], str | None]] = {
    "structured": structured,
    "search/replace": search_replace,
    "line numbers": line_numbers,
    "diff-match-patch": match_patch,
}


def outcome(case: Case, result: str | None) -> Outcome:
    """`correct` also where refusing is right; `refused` where a person could have placed it."""
    if result is None:
        return "correct" if case.expected is None else "refused"
    return "correct" if case.expected is not None and _says_the_same(result, case.expected) else "wrong"


def _says_the_same(result: str, expected: str) -> bool:
    """Whether both are the same program; what lies around the edits is then the same text, as other tests show."""
    return result == expected or (_program(result) is not None and _program(result) == _program(expected))


@cache
def _program(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return None
