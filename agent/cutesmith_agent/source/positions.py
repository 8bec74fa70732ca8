"""Characters, UTF-8 bytes and editor positions of one text.

The source tools speak in character offsets (code points). tree-sitter counts UTF-8 bytes; an editor counts lines and,
within a line, units of the encoding it agreed on: UTF-16 unless it said otherwise. Lines end in LF, CRLF or CR alone,
as the Language Server Protocol and Python have it; a form feed or U+2028 ends none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_CODECS = {"utf-8": ("utf-8", "surrogatepass"), "utf-16": ("utf-16-le", "surrogatepass")}
_UNIT = {"utf-8": 1, "utf-16": 2}  # bytes
_MOST_UNITS = {"utf-8": 4, "utf-16": 2}  # of one character
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, order=True)
class Span:
    """Characters start (first) to end (one past the last)."""

    start: int
    end: int


@dataclass(frozen=True, order=True)
class Position:
    """An editor's position: both 0-based, the column in units of the agreed encoding."""

    line: int
    column: int


def to_bytes(text: str) -> bytes:
    """UTF-8, lone surrogates (editors do send them) included."""
    return text.encode("utf-8", "surrogatepass")


def _width(text: str, encoding: Encoding) -> int:
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return len(text.encode(*_CODECS[encoding])) // _UNIT[encoding]


def _fitting(text: str, column: int, encoding: Encoding) -> int:
    """How many characters lie before a column; one that it cuts in two does. (Lines of a megabyte are met with.)"""
    low, high = column // _MOST_UNITS[encoding], min(column, len(text))
    while low < high:
        middle = (low + high) // 2
        if _width(text[:middle], encoding) >= column:
            high = middle
        else:
            low = middle + 1
    return min(low, len(text))


def _line_starts(text: str) -> list[int]:
    if not text.isascii():
        return [0, *(match.end() for match in _LINE_END.finditer(text))]
    starts = list(accumulate(map(len, text.encode().splitlines(keepends=True)), initial=0))  # bytes end lines as we do
    return starts if text.endswith(("\n", "\r")) or len(starts) == 1 else starts[:-1]


class Lines:
    """The lines of a text, and conversions between its three ways of counting."""

    def __init__(self, text: str, starts: list[int] | None = None) -> None:
        """`starts`: of its lines, where they are known."""
        self.text = text
        self.starts = _line_starts(text) if starts is None else starts
        self._is_ascii = text.isascii()  # then characters are bytes

    @cached_property
    def _byte_starts(self) -> list[int]:
        """Byte offset of each line."""
        if self._is_ascii:
            return self.starts
        return list(accumulate(map(len, to_bytes(self.text).splitlines(keepends=True)), initial=0))[: len(self.starts)]

    def edited(self, start: int, end: int, inserted: str) -> Lines:
        """Those of the text with `inserted` in place of the characters from start to end."""
        text = f"{self.text[:start]}{inserted}{self.text[end:]}"
        first, last = max(self.line_of(start) - 1, 0), self.line_of(end)  # a CR before may become a CRLF
        low, high, longer = self.starts[first], self.span(last).end, len(inserted) - (end - start)
        within = [low + each for each in _line_starts(text[low : high + longer])]
        is_last = last + 1 == len(self.starts)
        after = [] if is_last else [each + longer for each in self.starts[last + 2 :]]
        return Lines(text, [*self.starts[:first], *within, *after])

    def line_of(self, char: int) -> int:
        """The 0-based line that holds a character."""
        return bisect_right(self.starts, char) - 1

    def span(self, line: int) -> Span:
        """The characters of a 0-based line, its line end included."""
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        return Span(self.starts[line], end)

    def line_end(self, line: int) -> str:
        """What ends a 0-based line: LF, CRLF, CR, or nothing on the last."""
        span = self.span(line)
        match = re.search(r"(\r\n|\r|\n)\Z", self.text[span.start : span.end])
        return match[0] if match else ""

    def char(self, byte: int) -> int:
        """The character that begins at a byte offset."""
        if self._is_ascii:
            return byte
        line = bisect_right(self._byte_starts, byte) - 1
        rest, span = byte - self._byte_starts[line], self.span(line)
        content = self.text[span.start : span.end]
        if content.isascii():
            return span.start + rest
        return span.start + len(to_bytes(content)[:rest].decode("utf-8", "surrogatepass"))

    def byte(self, char: int) -> int:
        """The byte offset at which a character begins."""
        if self._is_ascii:
            return char
        line = self.line_of(char)
        return self._byte_starts[line] + len(to_bytes(self.text[self.starts[line] : char]))

    def position(self, char: int, encoding: Encoding = "utf-16") -> Position:
        """Where an editor shows a character."""
        line = self.line_of(char)
        return Position(line, _width(self.text[self.starts[line] : char], encoding))

    def offset(self, position: Position, encoding: Encoding = "utf-16") -> int:
        """The character at an editor's position; past the end of a line or of the text: that end."""
        if position.line >= len(self.starts):
            return len(self.text)
        span = self.span(position.line)
        content = self.text[span.start : span.end].rstrip("\r\n")
        if content.isascii() or encoding == "utf-32":
            return span.start + min(position.column, len(content))
        return span.start + _fitting(content, position.column, encoding)


_recent: deque[Lines] = deque(maxlen=3)  # a large file's are as large as its text


def lines_of(text: str) -> Lines:
    """The lines of a text, counted once for all who hold it."""
    for known in tuple(_recent):
        if known.text == text:
            return known
    return remembered(Lines(text))


def remembered(lines: Lines) -> Lines:
    """Lines that `lines_of` gives to those who hold their text."""
    _recent.append(lines)
    return lines
