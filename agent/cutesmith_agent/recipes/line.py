"""The windows along a line of the input: pooling and depthwise convolution in one dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .ir import Pool, WindowDim
from .layout import widest_vector
from .lowering import Program
from .pointwise import pools_of
from .pool_text import affine, stays_inside, wide_affine
from .strip import MOST_WEIGHTS, writes_in_order


@dataclass(frozen=True)
class Line:
    """A kernel's windows: `width` results of a line of the input; `sizes`: of the dimensions that count lines."""

    program: Program
    pool: Pool
    sizes: tuple[int, ...]
    width: int

    @property
    def along(self) -> WindowDim:
        return self.pool.windows[-1]

    @property
    def length(self) -> int:
        """Elements of a line of the input."""
        return self.along.size

    @property
    def stride(self) -> int:
        return self.along.terms[0][1]

    @property
    def reach(self) -> int:
        """From a window's first element to its last."""
        return (self.along.taps - 1) * self.along.dilation

    @property
    def terms(self) -> tuple[tuple[int, int], ...]:
        """Where lines begin in the input."""
        across = tuple((k, c * w.stride) for w in self.pool.windows[:-1] for k, c in w.terms)
        return (*self.pool.terms, *across)

    @property
    def offset(self) -> int:
        return self.pool.offset + sum(w.offset * w.stride for w in self.pool.windows[:-1])

    @property
    def vector(self) -> int:
        """Elements of an access that no line of the input straddles."""
        return math.gcd(widest_vector(self.program), self.length, self.offset, *(c for _, c in self.terms))

    def outer(self, terms: tuple[tuple[int, int], ...], offset: int = 0, *, wide: bool = False) -> str:
        """An index of the dimensions that count lines, of whose values `outer` counts."""
        return (wide_affine if wide else affine)(self.sizes, terms, offset, "outer")


def line_of(program: Program) -> Line | None:
    """The only window of a kernel, if it runs along the last dimension of the results and of the input."""
    pools = pools_of(tuple(s.expr for s in program.stores))
    last = len(program.sizes) - 1
    if program.has_reductions or len(pools) != 1 or last < 0:
        return None
    pool = pools[0]
    along, across = pool.windows[-1], pool.windows[:-1]
    if along.stride != 1 or along.taps == 1 or [k for k, _ in along.terms] != [last]:
        return None
    if any(w.taps > 1 or not stays_inside(program, w) for w in across):
        return None
    line = Line(program, pool, program.sizes[:-1], program.sizes[-1])
    outer = [k for k, _ in line.terms]
    if pool.weight is not None:
        outer += [k for k, stride in enumerate(pool.weight.strides) if stride]
        if along.taps > MOST_WEIGHTS:
            return None
    return line if last not in outer and writes_in_order(program) else None
