"""Python text as a syntax tree that survives half-typed code, and cheap re-parsing after an edit."""

from __future__ import annotations

import io
import itertools
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tree_sitter import Node

from cutesmith_agent.source.pieces import Piece, cut
from cutesmith_agent.source.positions import Lines, Span, lines_of, to_bytes

_LONE_CR = re.compile(rb"\r(?!\n)")


@dataclass(frozen=True)
class Source:
    """A text with its syntax. `data` is what nodes count in: UTF-8, CR line ends turned into LF."""

    text: str
    data: bytes
    pieces: tuple[Piece, ...]
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # what was worked out of it, by name
    _roots: dict[int, Node] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def lines(self) -> Lines:
        return lines_of(self.text)

    @cached_property
    def has_error(self) -> bool:
        """Whether any of the text does not parse."""
        return any(piece.has_error for piece in self.pieces)

    @cached_property
    def _starts(self) -> list[int]:
        """The first byte of each piece, and the end."""
        return list(itertools.accumulate((len(piece.data) for piece in self.pieces), initial=0))

    @cached_property
    def _rows(self) -> list[int]:
        """The row that each piece begins on."""
        return list(itertools.accumulate((piece.rows for piece in self.pieces), initial=0))

    def _root(self, number: int) -> Node:
        """The root of a piece, at its place in the file."""
        if number not in self._roots:
            tree = self.pieces[number].own_tree()
            tree.edit(0, 0, self._starts[number], (0, 0), (0, 0), (self._rows[number], 0))
            self._roots[number] = tree.root_node
        return self._roots[number]

    def span(self, node: Node) -> Span:
        """The node's characters."""
        return Span(self.lines.char(node.start_byte), self.lines.char(node.end_byte))

    def read(self, node: Node) -> str:
        """The node's text."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def statements(self, *, unneeded: frozenset[str] = frozenset()) -> Iterator[Node]:
        """The top-level statements in order. Those of unneeded kinds may be left out, which saves time."""
        for number, piece in enumerate(self.pieces):
            if not piece.kinds <= unneeded:
                yield from self._root(number).named_children

    def binding(self, names: set[str]) -> Iterator[tuple[tuple[int, int], Node]]:
        """The top-level statements of pieces that bind one of the names, by their place in the order of all."""
        for number, piece in enumerate(self.pieces):
            if not piece.names.isdisjoint(names):
                yield from (((number, at), node) for at, node in enumerate(self._root(number).named_children))

    def node_at(self, start: int, end: int) -> Node | None:
        """The smallest node around these bytes."""
        number = bisect_right(self._starts, start) - 1
        return self._root(number).descendant_for_byte_range(start, end) if number < len(self.pieces) else None


def parse(text: str | bytes, previous: Source | None = None) -> Source:
    """Parse a file. `previous`, the parse of the text before an edit, saves parsing what is still the same.

    Bytes are decoded as Python would (BOM, coding comment), a BOM staying in the text as its first character; raises
    UnicodeDecodeError or SyntaxError (unknown encoding) where Python would."""
    if isinstance(text, bytes):
        text = decode(text)
    if previous is not None and previous.text == text:
        return previous
    data = _LONE_CR.sub(b"\n", to_bytes(text))
    return Source(text, data, cut(data, previous.pieces if previous is not None else ()))


def decode(data: bytes) -> str:
    """A source file's text, line ends and BOM as they are."""
    encoding = _encoding(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise
    except (LookupError, UnicodeError) as error:  # rot13 turns text into text, and undefined reads nothing
        raise SyntaxError(f"{encoding} is no encoding of text files") from error


def encode(text: str, original: bytes) -> bytes:
    """The bytes of an edited file, in the encoding of the original."""
    return text.encode(_encoding(original))


def _encoding(data: bytes) -> str:
    """What the file's coding comment or BOM says; a BOM stays a character."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return "utf-8" if encoding == "utf-8-sig" else encoding
