"""The edit at a place that is found: what goes, and what comes with which indentation."""

from __future__ import annotations

import re

from cutesmith_agent.patches import prose
from cutesmith_agent.patches.indenting import fit, width
from cutesmith_agent.patches.layouts import Match
from cutesmith_agent.patches.patch import Change
from cutesmith_agent.patches.text import Text, indent_of
from cutesmith_agent.patches.tokens import tokens
from cutesmith_agent.source.edits import Edit, apply_edits
from cutesmith_agent.source.positions import Span
from cutesmith_agent.source.syntax import syntax_problem

_SAME_COMMENT = 0.4  # likeness from which a comment above or below the code is taken for the quoted one
_EDGES = re.compile(r"\A((?:[ \t]*\n)*)(.*?)((?:\n[ \t]*)*)\Z", re.DOTALL)


def literal(text: Text, change: Change, span: Span) -> Edit | None:
    """`replace` in place of `find`, character by character.

    Where `find` is one line without its indentation and `replace` has more, these may be written without it too, or be
    meant to end the block. The reading that parses is taken; where both do, the first, unless a blank line makes it
    doubtful: then None."""
    new = change.replace.replace("\n", text.line_end)
    edit = Edit(span.start, span.end, new)
    real = text.indent(span.start)
    if not real or "\n" in change.find or not _has_shallow_lines(change.replace, width(real)):
        return edit
    moved = Edit(span.start, span.end, new.replace("\n", "\n" + real))
    readings = [each for each in (edit, moved) if syntax_problem(apply_edits(text.text, [each])) is None]
    if len(readings) > 1:
        return None if "\n\n" in change.replace else moved
    return readings[0] if readings else edit


def _has_shallow_lines(new: str, least: int) -> bool:
    return any(line.strip() and width(indent_of(line)) < least for line in new.split("\n")[1:])


def relaid(text: Text, change: Change, match: Match) -> Edit | None:
    """`replace` at a place whose layout differs from that of `find`, indented as the place is.

    None where no one rule of indentation takes the one layout to the other."""
    find, new = _without_edges(change.find, change.replace)
    if not match.indents:
        return Edit(match.span.start, match.span.end, new)
    rule = fit(match.indents, first_is_bare=not find[:1].isspace())
    moved = rule.apply(new, text.line_end) if rule else None
    if moved is None:
        return None
    span = _with_comments(text, find, new, match.span)
    if text.indent(span.start) is not None:
        return _lines_edit(text, span, moved)
    return Edit(span.start, span.end, moved.lstrip(" "))


def _lines_edit(text: Text, span: Span, new: str) -> Edit:
    """Whole lines change; with nothing in their place, their line end goes too."""
    end = span.end
    if not new and (rest := re.compile(r"[ \t]*(?:\r\n|\n|\r)").match(text.text, end)):
        end = rest.end()
    return Edit(text.line_start(span.start), end, new)


def _without_edges(find: str, new: str) -> tuple[str, str]:
    """Both without the blank lines around `find`, as far as `replace` has them as well."""
    quoted, given = _EDGES.match(find), _EDGES.match(new)
    assert quoted is not None
    assert given is not None
    lead, tail = quoted[1].count("\n"), quoted[3].count("\n")
    before, after = given[1].count("\n"), given[3].count("\n")
    return quoted[2], "\n" * max(0, before - lead) + given[2] + "\n" * max(0, after - tail)


def _with_comments(text: Text, find: str, new: str, span: Span) -> Span:
    """The span with the comments around it that `find` quotes, in whatever words."""
    quoted = tokens(find)
    if not quoted.code:
        return span
    above = [comment for comment in quoted.comments if comment.end <= quoted.code[0].start]
    below = [comment for comment in quoted.comments if comment.start >= quoted.code[-1].end]
    beside = [comment for comment in below if "\n" not in find[quoted.code[-1].end : comment.start]]
    start, end = span.start, span.end
    if beside or "#" in new.rpartition("\n")[2]:
        end = text.comment_after(end)
    first = text.line(start)
    for comment in reversed(above):
        if text.indent(start) is not None and _is_that_comment(text, first - 1, comment.form):
            first -= 1
            start = text.lines.span(first - 1).start + len(indent_of(text.line_text(first)))
    last = text.line(end)
    for comment in below[len(beside) :]:
        if _is_that_comment(text, last + 1, comment.form):
            last += 1
            end = text.lines.span(last - 1).start + len(text.line_text(last))
    return Span(start, end)


def _is_that_comment(text: Text, number: int, quoted: str) -> bool:
    if not 1 <= number <= len(text.lines.starts) or not text.is_prose(number, comment=True):
        return False
    return prose.likeness(text.line_text(number), quoted) >= _SAME_COMMENT
