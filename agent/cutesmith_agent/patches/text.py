"""A candidate's text, with what placing edits in it needs, each computed once."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from functools import cached_property

from cutesmith_agent.patches.tokens import Tokens, tokens
from cutesmith_agent.source.parsing import Source, parse
from cutesmith_agent.source.positions import Lines, Span

_BLANK = re.compile(r"[ \t\f]*")
_REST = re.compile(r"[ \t\f]*(?:#[^\r\n]*)?(?=[\r\n]|\Z)")


@dataclass(frozen=True)
class Text:
    """The file that is patched."""

    text: str

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    @cached_property
    def tokens(self) -> Tokens:
        return tokens(self.text)

    @cached_property
    def _syntax(self) -> Source:
        return parse(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens.code]

    @cached_property
    def _ends(self) -> list[int]:
        return [token.end for token in self.tokens.code]

    @cached_property
    def _string_lines(self) -> set[int]:
        """Lines (1-based) that a string of several lines covers."""
        strings = [token for token in self.tokens.code if token.kind in ("string", "prose")]
        spans = [(self.line(token.start), self.line(token.end)) for token in strings]
        return {number for first, last in spans if last > first for number in range(first, last + 1)}

    @property
    def line_end(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def line(self, char: int) -> int:
        """The 1-based line of a character."""
        return self.lines.line_of(char) + 1

    def line_text(self, number: int) -> str:
        """A 1-based line, without its end."""
        span = self.lines.span(number - 1)
        return self.text[span.start : span.end].rstrip("\r\n")

    def line_start(self, char: int) -> int:
        return self.lines.span(self.lines.line_of(char)).start

    def indent(self, char: int) -> str | None:
        """The blanks before a character that is the first of its line; None for others."""
        before = self.text[self.line_start(char) : char]
        return before if not before.strip() else None

    def is_prose(self, number: int, *, comment: bool) -> bool:
        """Whether a 1-based line is a comment alone; with comment False: whether it is part of a long string."""
        if comment:
            return number not in self._string_lines and self.line_text(number).lstrip().startswith("#")
        return number in self._string_lines

    def comment_after(self, end: int) -> int:
        """Where the comment ends that alone follows on the line; `end` itself without one."""
        match = _REST.match(self.text, end)
        return match.end() if match and "#" in match[0] else end

    def is_whole(self, span: Span) -> bool:
        """Whether the span is whole lines or whole parts of the syntax. Lines: but for indentation and a comment."""
        content = self.text[span.start : span.end]
        lead, tail = len(content) - len(content.lstrip()), len(content) - len(content.rstrip())
        inner = Span(span.start + lead, span.end - tail)
        is_lines = self.indent(inner.start) is not None and _REST.match(self.text, inner.end) is not None
        return is_lines or self._is_whole_nodes(inner)

    def _is_whole_nodes(self, span: Span) -> bool:
        """Whether the span is one node of the syntax, or neighbours under one node: `a + b` is none in `a + b * c`."""
        start, end = self.lines.byte(span.start), self.lines.byte(span.end)
        node = self._syntax.node_at(start, end)
        if node is None or node.end_byte < end or not self._is_whole_tokens(span):
            return False
        if (node.start_byte, node.end_byte) == (start, end):
            return True
        cut = [each for each in node.children if not (each.end_byte <= start or each.start_byte >= end)]
        return bool(cut) and all(start <= each.start_byte and each.end_byte <= end for each in cut)

    def _is_whole_tokens(self, span: Span) -> bool:
        first, last = bisect.bisect_left(self._starts, span.start), bisect.bisect_left(self._ends, span.end)
        begins = first < len(self._starts) and self._starts[first] == span.start
        return begins and last < len(self._ends) and self._ends[last] == span.end


def indent_of(line: str) -> str:
    match = _BLANK.match(line)
    return match[0] if match else ""
