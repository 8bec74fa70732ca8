"""Index spaces: the dimensions a kernel iterates, and affine indices into tensors.

Every output dimension starts as one factor. Lowering asks for finer factors where a `view` merges dimensions or a `cat`
joins pieces, by raising `Refine`; the caller splits the factor and lowers again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutesmith_evaluator.types import TensorSpec

PICKED = 1000  # and up: not factors, but places that a `Pick` reads from another tensor
WINDOW = 2000  # and up: places within a window, by its dimension


@dataclass(frozen=True)
class Factor:
    """A mixed-radix digit of a root dimension. `unrolled`: its values are separate stores of one thread."""

    size: int
    unrolled: bool = False


@dataclass(frozen=True)
class Index:
    """offset + sum(coefficient * factor) over (factor id, coefficient) terms."""

    terms: tuple[tuple[int, int], ...] = ()
    offset: int = 0

    def plus(self, offset: int) -> Index:
        return replace(self, offset=self.offset + offset)

    def times(self, scale: int) -> Index:
        return Index(tuple((k, c * scale) for k, c in self.terms), self.offset * scale)

    def add(self, other: Index) -> Index:
        merged: dict[int, int] = dict(self.terms)
        for k, c in other.terms:
            merged[k] = merged.get(k, 0) + c
        return Index(tuple(sorted((k, c) for k, c in merged.items() if c)), self.offset + other.offset)


@dataclass(frozen=True)
class Refine(Exception):  # noqa: N818 - control flow, not an error
    """Factor `factor` must become (size // inner, inner); `unroll`: the outer part picks a piece of a cat."""

    factor: int
    inner: int
    unroll: bool = False


@dataclass(frozen=True)
class Space:
    """Root dimensions as lists of factors; factor ids number them through, outermost first."""

    dims: tuple[tuple[Factor, ...], ...]
    row_dims: int  # the first dims are rows, the rest columns

    @staticmethod
    def of(rows: tuple[int, ...], columns: tuple[int, ...]) -> Space:
        return Space(tuple((Factor(n),) for n in (*rows, *columns)), len(rows))

    @property
    def factors(self) -> tuple[Factor, ...]:
        return tuple(f for dim in self.dims for f in dim)

    @property
    def row_factors(self) -> int:
        return sum(len(dim) for dim in self.dims[: self.row_dims])

    def index(self, dim: int) -> Index:
        """The root dimension's own value."""
        first = sum(len(d) for d in self.dims[:dim])
        terms, stride = [], 1
        for k in reversed(range(len(self.dims[dim]))):
            if self.dims[dim][k].size > 1:
                terms.append((first + k, stride))
            stride *= self.dims[dim][k].size
        return Index(tuple(sorted(terms)))

    def refine(self, request: Refine) -> Space:
        dims, k = [], 0
        for dim in self.dims:
            factors = []
            for f in dim:
                if k == request.factor:
                    factors += [Factor(f.size // request.inner, request.unroll), Factor(request.inner)]
                else:
                    factors.append(f)
                k += 1
            dims.append(tuple(factors))
        return replace(self, dims=tuple(dims))

    def span(self, index: Index) -> tuple[int, int]:
        """Smallest and largest value of an index over the space."""
        low = high = index.offset
        for k, c in index.terms:
            reach = c * (self.factors[k].size - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    def fix(self, index: Index, values: dict[int, int]) -> Index:
        """The index with unrolled factors at given values."""
        offset = index.offset + sum(c * values[k] for k, c in index.terms if k in values)
        return Index(tuple((k, c) for k, c in index.terms if k not in values), offset)


def is_picked(index: Index) -> bool:
    """Whether an index is a place that is read from a tensor."""
    return any(k >= PICKED for k, _ in index.terms)


def unravel(space: Space, flat: Index, sizes: tuple[int, ...]) -> tuple[Index, ...]:
    """The index of each of `sizes` (row-major) that a flat index stands for; asks for finer factors where it must."""
    result: list[Index] = []
    for size in reversed(sizes):
        inner, flat = _split(space, flat, size)
        result.append(inner)
    return tuple(reversed(result))


def _split(space: Space, index: Index, size: int) -> tuple[Index, Index]:
    """(index % size, index // size) for an affine index whose digits line up with `size`."""
    if size == 1:
        return Index(), index
    inner, outer = [], []
    for k, c in index.terms:
        if k >= PICKED:
            raise ValueError("places that are read from a tensor")
        n = space.factors[k].size
        if c % size == 0:
            outer.append((k, c // size))
        elif size % c == 0 and n * c <= size:
            inner.append((k, c))
        elif size % c == 0 and n % (size // c) == 0:
            raise Refine(k, size // c)
        else:
            raise ValueError("dimensions that do not line up")
    low = Index(tuple(inner), index.offset % size)
    if space.span(low)[1] >= size:
        raise ValueError("dimensions that do not line up")
    return low, Index(tuple(outer), index.offset // size)


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with the second dimension innermost."""
    inner = contiguous((shape[0], *shape[2:], shape[1]))
    return (inner[0], inner[-1], *inner[1:-1])


def ranks(strides: tuple[int, ...]) -> tuple[int, ...]:
    """Each dimension's place in memory, the innermost first."""
    order = sorted(range(len(strides)), key=lambda d: (strides[d], -d))
    return tuple(order.index(d) for d in range(len(strides)))


def stored_strides(spec: TensorSpec) -> tuple[int, ...]:
    """Of an output: its own where they are a permutation of a contiguous tensor's, else a contiguous tensor's."""
    plain = contiguous(spec.shape)
    order = sorted(range(len(spec.shape)), key=lambda d: (-spec.strides[d], d))
    step, own = 1, list(plain)
    for d in reversed(order):
        if spec.shape[d] > 1 and spec.strides[d] != step:
            return plain
        own[d] = step
        step *= spec.shape[d]
    if all(a == b for a, b, n in zip(own, plain, spec.shape, strict=True) if n > 1):
        return plain
    return tuple(own)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a tensor of this shape without gaps."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))
