"""A file cut at its top-level statements, each piece parsed apart.

Where a piece begins and how it parses follows from the text alone, so damage in one class does not swallow the next,
and after an edit the pieces that stayed the same keep their trees. (tree-sitter's own incremental parse gives other
trees for broken code than a parse from scratch, and starts over at every edit that adds a line.)
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import tree_sitter_python
from tree_sitter import Language, Parser, Tree

from cutesmith_agent.source.binding import bound_names

_MARGIN = re.compile(rb"\n(?=(?:class|def|async|import|from|if|try)\b|@)")
_TOKEN = re.compile(
    rb"#[^\n]*"
    rb"|'''(?:\\.|[^\\])*?(?:'''|(\Z))"
    rb'|"""(?:\\.|[^\\])*?(?:"""|(\Z))'
    rb"|'(?:\\.|[^'\\\n])*'?"
    rb'|"(?:\\.|[^"\\\n])*"?'
    rb"|[()\[\]{}]",
    re.DOTALL,
)
_STATEMENT = re.compile(rb"\n(?=[^\s#])(?!(?:else|elif|except|finally)\b)")
_LONGEST = len(b"\nfinally:")  # what that looks at
_DEPTH = {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}
_SELDOM_READ = frozenset({"function_definition", "comment"})  # a tree is forty times its text
_REACH = 1 << 15  # bytes within which a string or bracket must end that holds what looks like statements
_TRIES = 16  # broken pieces after which no more such strings are looked for: each costs milliseconds


@dataclass(frozen=True)
class Piece:
    """One or more whole statements. `kinds`: theirs, a decorated one as what is decorated. `names`: what they bind.
    `tree` is None where it is seldom looked at: a large file's would take most of a server's memory."""

    data: bytes
    tree: Tree | None
    rows: int  # line ends in it
    has_error: bool
    kinds: frozenset[str]
    names: frozenset[str]

    def own_tree(self) -> Tree:
        """The caller's own tree, which counts from the piece's first byte."""
        return self.tree.copy() if self.tree is not None else Parser(_language()).parse(self.data)


def cut(data: bytes, known: Mapping[bytes, Piece]) -> tuple[Piece, ...]:
    """The pieces of a file, which joined are the file. `known`: pieces by content that need not be parsed again."""
    parser = Parser(_language())

    def parsed(low: int, high: int) -> Piece:
        content = data[low:high]
        return known.get(content) or _parsed(parser, content)

    return tuple(_pieces(data, _bounds(data), parsed))


def _parsed(parser: Parser, content: bytes) -> Piece:
    tree = parser.parse(content)
    root = tree.root_node
    kinds = frozenset((node.child_by_field_name("definition") or node).type for node in root.named_children)
    names = frozenset(name for node in root.named_children for name in bound_names(node, content))
    kept = None if kinds <= _SELDOM_READ else tree
    return Piece(content, kept, content.count(b"\n"), root.has_error, kinds, names)


@cache
def _language() -> Language:
    return Language(tree_sitter_python.language())


def _bounds(data: bytes) -> list[int]:
    """Where pieces may end. A decorator stays with what it decorates, a line with what it continues."""
    ends = [match.start() for match in _MARGIN.finditer(data)]
    starts = [0, *(end + 1 for end in ends if not data.endswith((b"\\", b"\\\r"), 0, end))]
    return [start for before, start in itertools.pairwise(starts) if not data.startswith(b"@", before)] + [len(data)]


def _pieces(data: bytes, bounds: list[int], parsed: Callable[[int, int], Piece]) -> Iterator[Piece]:
    start = failures = 0
    while start < len(data):
        end = bounds[bisect_right(bounds, start)]
        piece = parsed(start, end)
        closed = _closed_after(data, start, end) if piece.has_error and failures < _TRIES else end
        if closed > end and not (whole := parsed(start, closed)).has_error:
            piece, end = whole, closed
        failures += piece.has_error
        yield piece
        start = end


def _closed_after(data: bytes, start: int, end: int) -> int:
    """Where a statement begins, or the file ends, after the string or bracket that is open at `end` was closed.

    `end` itself when none is open there or it is not closed within reach."""
    for low, high in _outside(data, start, min(start + _REACH, len(data))):
        begin = _STATEMENT.search(data, max(low, end - 1), high + _LONGEST) if high >= end else None
        if begin is not None and begin.start() < high:
            return begin.end()
        if high == len(data):
            return high
    return end


def _outside(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretches of code between strings, brackets and comments, of a text that begins in such a stretch."""
    low, depth = start, 0
    for token in _TOKEN.finditer(data, start, end):
        if depth == 0:
            yield low, token.start()
        if token.lastindex:  # a string without an end
            return
        low, depth = token.end(), max(0, depth + _DEPTH.get(token[0], 0))
    if depth == 0:
        yield low, end
