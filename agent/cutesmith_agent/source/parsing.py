"""Python text as a syntax tree that survives half-typed code, and cheap re-parsing after an edit."""

from __future__ import annotations

import io
import itertools
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import tree_sitter_python
from tree_sitter import Language, Node, Parser, Range, Tree

from cutesmith_agent.source.positions import Lines, Span, to_bytes

_LONE_CR = re.compile(rb"\r(?!\n)")
_STATEMENT_AT_MARGIN = re.compile(rb"^(?:class|def|async|@|import|from|if|try)\b|^@", re.MULTILINE)


@cache
def _language() -> Language:
    return Language(tree_sitter_python.language())


@dataclass(frozen=True)
class Source:
    """A text with its syntax tree. `data` is what the tree counts in: UTF-8, CR line ends turned into LF."""

    text: str
    data: bytes
    tree: Tree

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    def span(self, node: Node) -> Span:
        """The node's characters."""
        return Span(self.lines.char(node.start_byte), self.lines.char(node.end_byte))

    def read(self, node: Node) -> str:
        """The node's text."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def statements(self) -> Iterator[Node]:
        """The top-level statements in order. Where the text does not parse, each piece that starts at the margin is
        parsed apart, so that damage in one class does not swallow the next."""
        if not self.tree.root_node.has_error:
            yield from self.tree.root_node.named_children
            return
        damaged: list[Node] = []
        for child in self.tree.root_node.children:
            if child.has_error or child.is_missing:
                damaged.append(child)
                continue
            yield from self._pieces(damaged)
            damaged = []
            if child.is_named:
                yield child
        yield from self._pieces(damaged)

    def _pieces(self, damaged: list[Node]) -> Iterator[Node]:
        """The statements of a run of neighbouring nodes with errors."""
        if not damaged:
            return
        start, end = damaged[0].start_byte, damaged[-1].end_byte
        cuts = [match.start() for match in _STATEMENT_AT_MARGIN.finditer(self.data, start, end)]
        bounds = sorted({start, *_without_decorated(self.data, cuts), end})
        row = self.data.count(b"\n", 0, start)
        for low, high in itertools.pairwise(bounds):
            next_row = row + self.data.count(b"\n", low, high)
            piece = Range((row, _column(self.data, low)), (next_row, _column(self.data, high)), low, high)
            yield from Parser(_language(), included_ranges=[piece]).parse(self.data).root_node.named_children
            row = next_row


def _without_decorated(data: bytes, cuts: list[int]) -> list[int]:
    """Drop the cuts between a decorator and what it decorates."""
    return [cut for index, cut in enumerate(cuts) if not (index and data[cuts[index - 1] : cut].startswith(b"@"))]


def _point(data: bytes, byte: int) -> tuple[int, int]:
    return data.count(b"\n", 0, byte), _column(data, byte)


def _column(data: bytes, byte: int) -> int:
    return byte - (data.rfind(b"\n", 0, byte) + 1)


def parse(text: str | bytes, previous: Source | None = None) -> Source:
    """Parse a file. `previous`, the parse of the text before an edit, makes it an incremental parse.

    Bytes are decoded as Python would (BOM, coding comment), a BOM staying in the text as its first character; raises
    UnicodeDecodeError or SyntaxError (unknown encoding) where Python would."""
    if isinstance(text, bytes):
        text = decode(text)
    if previous is not None and previous.text == text:
        return previous
    data = _LONE_CR.sub(b"\n", to_bytes(text))
    old = None if previous is None else _edited_tree(previous, data)
    parser = Parser(_language())
    return Source(text, data, parser.parse(data) if old is None else parser.parse(data, old))


def decode(data: bytes) -> str:
    """A source file's text, line ends and BOM as they are."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode("utf-8" if encoding == "utf-8-sig" else encoding)


def encode(text: str, original: bytes) -> bytes:
    """The bytes of an edited file, in the encoding of the original."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(original).readline)
    return text.encode("utf-8" if encoding == "utf-8-sig" else encoding)


def _edited_tree(previous: Source, data: bytes) -> Tree:
    """The previous tree, told which bytes changed."""
    old = previous.data
    start = _common_prefix(old, data)
    tail = _common_suffix(old, data, min(len(old), len(data)) - start)
    old_end, new_end = len(old) - tail, len(data) - tail
    tree = previous.tree.__copy__()
    tree.edit(start, old_end, new_end, _point(old, start), _point(old, old_end), _point(data, new_end))
    return tree


def _common_prefix(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(left: bytes, right: bytes, limit: int) -> int:
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if left[len(left) - middle : len(left) - low] == right[len(right) - middle : len(right) - low]:
            low = middle
        else:
            high = middle - 1
    return low
