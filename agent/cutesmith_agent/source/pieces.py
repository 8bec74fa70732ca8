"""A file cut at its top-level statements, each piece parsed apart.

Where a piece begins and how it parses follows from the text alone, so damage in one class does not swallow the next,
and after an edit the pieces that stayed the same keep their trees. (tree-sitter's own incremental parse gives other
trees for broken code than a parse from scratch, and starts over at every edit that adds a line.)
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import tree_sitter_python
from tree_sitter import Language, Parser, Tree

from cutesmith_agent.source.binding import bound_names
from cutesmith_agent.source.common import common_ends

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
_AHEAD = max(_LONGEST, len(b"\nimport "))  # bytes after a piece's end that say that it ends there
_BEHIND = len(b"\\\r\n")  # bytes before a piece's start that say that it starts there
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


def cut(data: bytes, known: Sequence[Piece] = ()) -> tuple[Piece, ...]:
    """The pieces of a file, which joined are the file. `known`: those of the text before an edit: no piece of them is
    parsed again, and what an edit does not reach is not looked at again."""
    stayed = _Stayed(data, known)
    pieces, rest = stayed.before(), None
    at, failures = sum(len(piece.data) for piece in pieces), sum(piece.has_error for piece in pieces)
    knife = _Knife(data, {piece.data: piece for piece in known})
    for piece in knife.pieces(at, failures):
        pieces.append(piece)
        at, failures = at + len(piece.data), failures + piece.has_error
        if (rest := stayed.after(at, failures)) is not None:
            break
    return (*pieces, *(rest or ()))


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


class _Knife:
    """Cuts one text. `known`: pieces by content, which need not be parsed again."""

    def __init__(self, data: bytes, known: Mapping[bytes, Piece]) -> None:
        self._data = data
        self._known = known
        self._parser = Parser(_language())

    def pieces(self, start: int, failures: int) -> Iterator[Piece]:
        """The pieces from a margin (or 0) on; `failures`: broken ones before it."""
        bounds = _bounds(self._data, start)
        while start < len(self._data):
            end = next(bound for bound in bounds if bound > start)
            piece, closed = self._parsed(start, end), end
            if piece.has_error and failures < _TRIES:
                closed = _closed_after(self._data, start, end)
            if closed > end and not (whole := self._parsed(start, closed)).has_error:
                piece, start = whole, closed
            else:
                start = end
            failures += piece.has_error
            yield piece

    def _parsed(self, low: int, high: int) -> Piece:
        content = self._data[low:high]
        return self._known.get(content) or _parsed(self._parser, content)


class _Stayed:
    """Which pieces of a text an edit leaves as they were, because all that they were cut by is still there."""

    def __init__(self, data: bytes, known: Sequence[Piece]) -> None:
        self._data = data
        self._known = known
        self._ends = list(itertools.accumulate(len(piece.data) for piece in known))
        self._failures = list(itertools.accumulate((piece.has_error for piece in known), initial=0))
        same_before, same_after = common_ends(b"".join(piece.data for piece in known), data)
        self._unlike, self._like = same_before, len(data) - same_after  # where the edit begins, and where it has ended

    def before(self) -> list[Piece]:
        """The pieces before the edit. The next one begins at a margin."""
        count = bisect_right(self._ends, self._unlike - _AHEAD)
        broken = (at for at in range(count) if self._known[at].has_error)
        count = next((at for at in broken if self._start(at) + _REACH + _AHEAD > self._unlike), count)
        while count and not _is_margin(self._data, self._start(count)):
            count -= 1
        return list(self._known[:count])

    def after(self, start: int, failures: int) -> Sequence[Piece] | None:
        """The pieces from `start` on, before which `failures` are broken; None where they have to be cut anew."""
        if not self._known or start - _BEHIND < self._like or not _is_margin(self._data, start):
            return None
        number = bisect_right(self._ends, start - len(self._data) + self._ends[-1])
        if self._start(number) != start - len(self._data) + self._ends[-1]:
            return None
        then, all_then = self._failures[number], self._failures[-1]
        counts = sorted((then, failures))
        is_as_then = then == failures or counts[0] >= _TRIES or counts[1] + all_then - then < _TRIES
        return self._known[number:] if is_as_then else None

    def _start(self, number: int) -> int:
        return self._ends[number - 1] if number else 0


def _is_margin(data: bytes, at: int) -> bool:
    return at > 0 and _MARGIN.match(data, at - 1) is not None and not _goes_on(data, at - 1)


def _goes_on(data: bytes, end: int) -> bool:
    """Whether the line that ends there continues on the next."""
    return data.endswith((b"\\", b"\\\r"), 0, end)


def _bounds(data: bytes, start: int) -> Iterator[int]:
    """Where pieces may end after a margin (or 0). A decorator stays with what it decorates, a line with what it
    continues."""
    before = start
    for margin in _MARGIN.finditer(data, start):
        if _goes_on(data, margin.start()):
            continue
        if not data.startswith(b"@", before):
            yield margin.end()
        before = margin.end()
    yield len(data)


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
