"""Where in a file a change belongs: one place that the quoted text itself settles, or none.

In this order: the text as it is quoted; the same tokens in another layout, with other comments, or with messages and
docstrings in other words; the same lines in another order; for comments alone, the same words. Every step wants one
place only. Names, numbers and operators are never matched by likeness: of two lines that differ in `acc5` and `acc6`,
one would stand in for the other. `near_line` may be stale, so it never chooses between places; it only casts doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cutesmith_agent.patches import rewriting
from cutesmith_agent.patches.layouts import Match, follows, same_lines, same_tokens, same_words
from cutesmith_agent.patches.patch import Change
from cutesmith_agent.patches.text import Text
from cutesmith_agent.patches.tokens import plain
from cutesmith_agent.source.edits import Edit
from cutesmith_agent.source.positions import Span

# As prompts put before lines: a blank after the mark may be theirs or the line's own.
_NUMBERS = tuple(re.compile(rf"[ \t]*\d+[ \t]*(?:(?:[|│→]|:(?!=)){blank}|\t)") for blank in (" ", ""))
_NUMBERED = re.compile(r"[ \d]{3}\d[|>] ")  # a line of a listing
_MARGIN = re.compile(rf"{_NUMBERED.pattern}| {{6}}")
_CLOSE = 2  # lines by which a line number that is right may still be off


@dataclass(frozen=True)
class Unplaced:
    """`spans`: the places that fit equally well; none where nothing fits. `reason`: what `find` does, in words."""

    reason: str
    spans: tuple[Span, ...] = ()


def place(text: Text, change: Change) -> Edit | Unplaced:
    """The edit that a change comes to in this file."""
    result = _place(text, _normal(change))
    bare = [_normal(each) for number in _NUMBERS if (each := _without_numbers(change, number))]
    if isinstance(result, Edit) or len(result.spans) > 1 or not bare:
        return result
    found = _place(text, next((each for each in bare if f"\n{each.find}" in text.text), bare[0]))
    return found if isinstance(found, Edit) or not result.spans else result


def _normal(change: Change) -> Change:
    """Line ends as LF, without a last one that only one of the texts has, unless lines of `replace` end with it."""
    find, new = (text.replace("\r\n", "\n") for text in (change.find, change.replace))
    if find.endswith("\n") and not new.endswith("\n") and new:
        find = find.rstrip("\n")
    if new.endswith("\n") and "\n" not in find:
        new = new.rstrip("\n")
    return replace(change, find=find, replace=new)


def _without_numbers(change: Change, number: re.Pattern[str]) -> Change | None:
    """The change without the line numbers of the prompt before its lines; None where it has none."""
    if not all(number.match(line) for line in change.find.splitlines() if line.strip()):
        return _without_margin(change)
    find, new = (
        "".join(number.sub("", line, count=1) for line in text.splitlines(keepends=True))
        for text in (change.find, change.replace)
    )
    return replace(change, find=find, replace=new) if find.strip() else None


def _without_margin(change: Change) -> Change | None:
    """The change without the margin in which a listing numbers some lines; None where a line lacks it, or where it is
    open whether the new lines have it, too."""
    find = _marginless(change.find)
    if find is None:
        return None
    new = _marginless(change.replace)
    is_numbered = any(map(_NUMBERED.match, change.replace.splitlines()))
    if new is None:
        return None if is_numbered else replace(change, find=find)
    if is_numbered or _is_like(new, change.replace, find):
        return replace(change, find=find, replace=new)
    return replace(change, find=find) if _is_like(change.replace, new, find) else None


def _is_like(one: str, other: str, find: str) -> bool:
    """Whether the one has more lines of `find` than the other, or as many and its indentation."""
    same = [len({*find.splitlines()} & {*text.splitlines()} - {""}) for text in (one, other)]
    return same[0] > same[1] or (same[0] == same[1] and _indent(one) == _indent(find))


def _marginless(text: str) -> str | None:
    """None where a line that is not blank lacks the margin."""
    lines = text.splitlines(keepends=True)
    has_one = all(_MARGIN.match(line) for line in lines if line.strip())
    return "".join(_MARGIN.sub("", line, count=1) for line in lines) if has_one else None


def _indent(text: str) -> int:
    """Blanks that all lines begin with."""
    return min((len(line) - len(line.lstrip(" ")) for line in text.splitlines() if line.strip()), default=0)


def _place(text: Text, change: Change) -> Edit | Unplaced:
    standing = _standing(text, change.find)
    exact = _exact(text, change.find, standing)
    change = change if exact else replace(change, find=plain(change.find))
    alike = same_tokens(text, change.find)
    if exact:
        return _only_exact(text, change, exact, alike)
    for matches, reordered in _inexact(text, change.find, alike):
        if len(matches) > 1:
            return Unplaced("reads so at more than one place", tuple(match.span for match in matches))
        if matches and reordered and not follows(text, matches[0].span, change.replace):
            return Unplaced(
                "is there with its lines in another order, which `replace` does not keep", (matches[0].span,)
            )
        if matches:
            return _at(text, change, matches[0])
    if standing:
        return Unplaced("stands in the file only as a part of longer names, expressions or texts", tuple(standing))
    return Unplaced("is not in the file")


def _inexact(text: Text, find: str, alike: Sequence[Match]) -> Iterable[tuple[Sequence[Match], bool]]:
    """The places by each way to read the quote, and whether it may have its lines in another order."""
    yield alike, False
    yield same_lines(text, find), True
    yield same_words(text, find), False


def _at(text: Text, change: Change, match: Match) -> Edit | Unplaced:
    edit = rewriting.relaid(text, change, match)
    return edit or Unplaced("is there, but indented in a way that `replace` cannot be fitted to", (match.span,))


def _standing(text: Text, find: str) -> list[Span]:
    """Where the text stands as quoted, be it in the middle of a name."""
    quoted = find.replace("\n", text.line_end)
    starts = [match.start() for match in re.finditer(f"(?={re.escape(quoted)})", text.text)]
    return [Span(start, start + len(quoted)) for start in starts]


def _exact(text: Text, find: str, standing: Sequence[Span]) -> list[Span]:
    """Those places that are whole lines or whole parts of the syntax; at the quoted indentation, if one is quoted."""
    spans = [span for span in standing if text.is_whole(span)]
    return [span for span in spans if not (find[:1].isspace() and text.indent(span.start))]


def _only_exact(text: Text, change: Change, exact: list[Span], alike: Sequence[Match]) -> Edit | Unplaced:
    if len(exact) > 1:
        return Unplaced("is in the file more than once", tuple(exact))
    (span,) = exact
    others = [match.span for match in alike if match.span.end <= span.start or match.span.start >= span.end]
    doubtful = [other for other in others if _is_nearer(text, other, span, change.near_line)]
    if doubtful:
        reason = f"is at one place, and at another indentation where near_line {change.near_line} points"
        return Unplaced(reason, (span, *doubtful))
    edit = rewriting.literal(text, change, span)
    return edit or Unplaced("is one line without its indentation, so that of `replace` can be read two ways", (span,))


def _is_nearer(text: Text, other: Span, span: Span, near: int | None) -> bool:
    if near is None or abs(text.line(span.start) - near) <= _CLOSE:
        return False
    return abs(text.line(other.start) - near) < abs(text.line(span.start) - near)
