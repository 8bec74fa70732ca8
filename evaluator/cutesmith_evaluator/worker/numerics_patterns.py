"""Where an output is wrong: how many elements, the first of them, and the shape that they make."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_COUNTED_DIAGONALS = 1 << 20  # of a matrix
_COUNTED_LINES = 1 << 26  # rows or columns; beyond that their counts would not fit beside a big output


class WrongElements:
    """Collects wrong elements of one output of `shape`, slice by slice in logical order."""

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.shape = shape
        self.total = math.prod(shape)
        self.count = 0
        self.not_finite = 0
        self.first = -1
        self.last = -1
        self.expected = math.nan
        self.got = math.nan
        self.rows: Tensor | None = None  # wrong elements in each row
        self.columns: Tensor | None = None
        self.along: list[Tensor | None] = []  # wrong elements at each index of each dimension
        self.diagonals = (0, 0)  # the least and the largest column - row, in the last two dimensions
        self._device = device

    def add(self, start: int, wrong: Tensor, got: Tensor, expected: Tensor) -> None:
        """`wrong`: bool for the elements from flat index `start`; `got` and `expected` are their values."""
        places = wrong.nonzero().squeeze(1)
        if not places.numel():
            return
        if not self.count:
            self.first = start + int(places[0])
            self.got, self.expected = got[places[0]].item(), expected[places[0]].item()
            columns = self.shape[-1] if self.shape else 1
            self.rows = _counters(self.total // columns, self._device)
            self.columns = _counters(columns, self._device)
            self.along = [_counters(length, self._device) for length in self.shape]
        self.count += places.numel()
        self.last = start + int(places[-1])
        if got.is_floating_point():
            self.not_finite += int((~got[places].isfinite()).sum())
        self._count_lines(places + start)

    def _count_lines(self, places: Tensor) -> None:
        columns = self.shape[-1] if self.shape else 1
        one = places.new_ones(()).expand(places.shape)
        for counters, indices in ((self.rows, places // columns), (self.columns, places % columns)):
            if counters is not None:
                counters.index_add_(0, indices, one)
        indices, rest = list[Tensor](), places
        for length in reversed(self.shape):
            indices.insert(0, rest % length)
            rest = rest // length
        for counters, index in zip(self.along, indices, strict=True):
            if counters is not None:
                counters.index_add_(0, index, one)
        if len(indices) > 1:
            low, high = (indices[-1] - indices[-2]).aminmax()
            known = self.diagonals if self.count > len(places) else (int(low), int(high))
            self.diagonals = min(known[0], int(low)), max(known[1], int(high))

    def index(self) -> tuple[int, ...]:
        """Index of the first wrong element."""
        return tuple(int(place) for place in _unravel(self.first, self.shape))

    def pattern(self) -> str | None:
        """The shape that the wrong elements make, in words; None when they make none that is known."""
        named = (_box, _last_columns, _lines) if len(self.shape) > 2 else (_last_columns, _lines, _every, _box)
        for describe in (_all, _tail, _block, *named, _triangle):
            words = describe(self)
            if words:
                return words
        return None

    def places(self) -> str:
        """How many elements, which, and from where on."""
        pattern, place = self.pattern(), ", ".join(map(str, self.index()))
        return f"{self.count:,} of {self.total:,} elements{f' ({pattern})' if pattern else ''}, the first [{place}]"

    def sentence(self, output: str) -> str:
        """What is wrong with `output`, in one clause without an end."""
        found = f"{self.count:,} of {self.total:,} elements of {output} are wrong"
        place = ", ".join(map(str, self.index()))
        found += f"; the first is [{place}]: expected {self.expected:.9g}, got {self.got:.9g}"
        pattern = self.pattern()
        if pattern:
            found += f"; wrong are {pattern}"
        if self.not_finite:
            share = "all" if self.not_finite == self.count else f"{self.not_finite:,}"
            found += f"; {share} of them are NaN or infinite"
        return found


def _counters(length: int, device: torch.device) -> Tensor | None:
    return torch.zeros(length, dtype=torch.int64, device=device) if length <= _COUNTED_LINES else None


def _unravel(flat: int, shape: tuple[int, ...]) -> list[int]:
    index: list[int] = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.insert(0, place)
    return index


def _all(wrong: WrongElements) -> str | None:
    return "all elements" if wrong.count == wrong.total else None


def _tail(wrong: WrongElements) -> str | None:
    if wrong.last == wrong.total - 1 and wrong.count == wrong.total - wrong.first:
        return f"only the tail, the last {wrong.count:,} elements"
    return None


def _block(wrong: WrongElements) -> str | None:
    if wrong.count > 1 and wrong.last - wrong.first + 1 == wrong.count:
        return f"one contiguous block, elements {wrong.first:,} to {wrong.last:,} in flat order"
    return None


def _last_columns(wrong: WrongElements) -> str | None:
    """The last columns of every row that is hit at all."""
    if wrong.columns is None or wrong.rows is None or wrong.rows.numel() < 2:
        return None
    hit = wrong.columns.nonzero().squeeze(1)
    width, rows = hit.numel(), int((wrong.rows > 0).sum())
    if int(hit[0]) != wrong.columns.numel() - width or wrong.count != width * rows:
        return None
    whole = "every row" if rows == wrong.rows.numel() else f"{rows:,} rows"
    return f"only the last {width:,} columns of {whole}" if width < wrong.columns.numel() else None


def _lines(wrong: WrongElements) -> str | None:
    """Whole rows, or whole columns."""
    if wrong.rows is None or wrong.columns is None or wrong.rows.numel() < 2:
        return None
    for name, counts, others in (("row", wrong.rows, wrong.columns), ("column", wrong.columns, wrong.rows)):
        hit = counts.nonzero().squeeze(1)
        if wrong.count == hit.numel() * others.numel():
            return _spaced(hit, name, counts.numel()) or _listed(hit, name)
    return None


def _every(wrong: WrongElements) -> str | None:
    """Every k-th element of a single row."""
    if wrong.columns is None or wrong.total != wrong.columns.numel():
        return None
    return _spaced(wrong.columns.nonzero().squeeze(1), "element", wrong.total)


def _box(wrong: WrongElements) -> str | None:
    """All elements whose indices lie in one slice of each dimension, in Python's notation."""
    hits = [counters.nonzero().squeeze(1) for counters in wrong.along if counters is not None]
    if len(hits) != len(wrong.shape) or wrong.count < 2 or math.prod(map(len, hits)) != wrong.count:
        return None
    slices = [_slice(hit, length) for hit, length in zip(hits, wrong.shape, strict=True)]
    return f"the block [{', '.join(map(str, slices))}]" if all(slices) else None


def _slice(hit: Tensor, length: int) -> str | None:
    """Indices in ascending order as a slice; None where their distances differ."""
    first, last, count = int(hit[0]), int(hit[-1]), hit.numel()
    if count == length:
        return ":"
    if count == 1:
        return str(first)
    step = int(hit[1] - hit[0])
    if not bool((hit.diff() == step).all()):
        return None
    start, stop = str(first) if first else "", str(last + 1) if last + step < length else ""
    return f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}"


def _triangle(wrong: WrongElements) -> str | None:
    """What lies on one side of a diagonal of each matrix of the last two dimensions."""
    if len(wrong.shape) < 2 or wrong.count < 3 or sum(wrong.shape[-2:]) > _COUNTED_DIAGONALS:
        return None
    rows, columns = wrong.shape[-2:]
    matrices, (low, high) = wrong.total // (rows * columns), wrong.diagonals
    for side, begin, end, edge in (("above", low, columns, low), ("below", -rows, high, high)):
        if wrong.count == matrices * sum(_diagonal_length(rows, columns, each) for each in range(begin, end + 1)):
            return f"the elements on and {side} the diagonal column - row = {edge}"
    return None


def _diagonal_length(rows: int, columns: int, offset: int) -> int:
    return max(0, min(rows, columns - offset) - max(0, -offset))


def _spaced(hit: Tensor, name: str, length: int) -> str | None:
    """`hit`: at least three indices below `length`, at equal distances of more than one."""
    if hit.numel() < 3:
        return None
    first, last, step = int(hit[0]), int(hit[-1]), int(hit[1] - hit[0])
    if step == 1 or not bool((hit.diff() == step).all()):
        return None
    end = f" to {last:,}" if last + step < length else ""
    return f"every {_ordinal(step)} {name}, from {name} {first:,}{end}"


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if 10 <= number % 100 <= 20 else endings.get(number % 10, "th")
    return f"{number}{ending}"


def _listed(hit: Tensor, name: str) -> str:
    first, last, count = int(hit[0]), int(hit[-1]), hit.numel()
    if count == 1:
        return f"the whole {name} {first:,}"
    if last - first + 1 == count:
        return f"the whole {name}s {first:,} to {last:,}"
    return f"{count:,} whole {name}s, from {name} {first:,} to {last:,}"
