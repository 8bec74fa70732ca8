"""The windows that a thread goes down, a strip of results below each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .ir import Pool, WindowDim
from .lowering import Program
from .pool_text import AXES, affine, wide_affine
from .space import contiguous

MOST_WEIGHTS = 64  # of a window that stay in registers


def writes_in_order(program: Program) -> bool:
    """Whether each output is written whole, and lies in memory as the kernel counts results."""
    strides = tuple(math.prod(program.sizes[k + 1 :]) for k in range(len(program.sizes)))
    in_order = all(
        all(own == s for own, s, n in zip(store.strides, strides, program.sizes, strict=True) if n > 1)
        for store in program.stores
    )
    one_each = len(program.stores) == len({s.output for s in program.stores})
    return in_order and one_each and all(s.offset == 0 and s.per_column for s in program.stores)


def in_planes(pool: Pool) -> bool:
    """Whether the windows' input lies row by row."""
    return tuple(w.stride for w in pool.windows) == contiguous(tuple(w.size for w in pool.windows))


@dataclass(frozen=True)
class Strip:
    """The windows of a kernel's results: `height` and `width` of a plane of results, `width_in` of its input."""

    program: Program
    pool: Pool
    height: int
    width: int
    exact: bool  # strips end where planes do

    @staticmethod
    def of(program: Program, pool: Pool, rows: int = 1) -> Strip:
        height, width = program.sizes[-2:]
        return Strip(program, pool, height, width, height % rows == 0)

    @property
    def axes(self) -> tuple[str, ...]:
        return AXES[-len(self.pool.windows) :]

    @property
    def rows(self) -> WindowDim:
        return self.pool.windows[-2]

    @property
    def columns(self) -> WindowDim:
        return self.pool.windows[-1]

    @property
    def stride_y(self) -> int:
        return self.rows.terms[0][1]

    @property
    def stride_x(self) -> int:
        return self.columns.terms[0][1]

    @property
    def taps_y(self) -> int:
        return self.rows.taps

    @property
    def width_in(self) -> int:
        return self.columns.size

    def constants(self, *, columns: bool) -> list[str]:
        lines = [
            f"HEIGHT, WIDTH = {self.height}, {self.width}  # of a plane of results",
            "STRIPS = -(-HEIGHT // ROWS)  # of a plane",
        ]
        if columns:
            lines += [f"CHUNKS = {self.width_in} // vector  # accesses of an input row", "GROUPS = THREADS // LANES"]
        last = (self.taps_y - 1) * self.rows.dilation
        return [
            *lines,
            f"SPAN = (ROWS - 1) * {self.stride_y} + {last + 1}  # input rows of a strip",
        ]

    def outer(self, terms: tuple[tuple[int, int], ...], offset: int = 0, *, wide: bool = False) -> str:
        """An index of the dimensions outside planes, of whose values `outer` counts."""
        sizes = self.program.sizes[:-2]
        return wide_affine(sizes, terms, offset, "outer") if wide else affine(sizes, terms, offset, "outer")

    def first(self, axis: str, name: str) -> str:
        """Where the window of the result `name` begins along an axis of planes."""
        window = self.rows if axis == "y" else self.columns
        stride = window.terms[0][1]
        start = name if stride == 1 else f"{name} * {stride}"
        return f"{start} - {-window.offset}" if window.offset < 0 else start

    @property
    def depth(self) -> WindowDim | None:
        return self.pool.windows[0] if len(self.pool.windows) == 3 else None
