"""mma.sync on float64. An H200 makes each element as a chain of fused multiply-adds, from the lowest k on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import float64
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import Words
from cutesmith_evaluator.emulator.rounding import F64, U64
from cutesmith_evaluator.emulator.steps import Target
from cutesmith_evaluator.emulator.whole_warps import WARP, running_warps, spread_over

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]

_SHAPES = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")
_GROUP, _IN_GROUP = np.arange(WARP) // 4, np.arange(WARP) % 4


@dataclass(frozen=True)
class DoubleShape:
    """Of A (rows, depth) and B (depth, 8)."""

    rows: int
    depth: int

    @property
    def registers(self) -> tuple[int, int, int]:
        """Of a lane, for A, B and C."""
        return self.rows * self.depth // WARP, self.depth // 4, self.rows // 4

    def left(self, register: int) -> tuple[Array, Array]:
        """Row and column of A that each lane holds in that register."""
        halves = self.rows // 8
        return _GROUP + 8 * (register % halves), _IN_GROUP + 4 * (register // halves)

    def result(self, register: int) -> tuple[Array, Array]:
        return _GROUP + 8 * (register // 2), 2 * _IN_GROUP + register % 2


def double_shape(words: Words) -> DoubleShape:
    shape = words.one_of(_SHAPES)
    words.one_of(("row",))
    words.one_of(("col",))
    for _ in range(4):
        words.one_of(("f64",))
    words.done()
    rows, _, depth = map(int, re.findall(r"\d+", shape))
    return DoubleShape(rows, depth)


@dataclass
class MultiplyDoubles:
    """`a`, `b`, `c`: slots of the operands' registers."""

    shape: DoubleShape
    a: Sequence[int]
    b: Sequence[int]
    c: Sequence[int]
    results: Sequence[Target | None]
    place: Place | None
    family: str = "matrix multiply"

    def run(self, batch: Batch) -> None:
        warps = running_warps(batch, "mma.sync")
        a, b, c = (_registers(batch, slots, warps) for slots in (self.a, self.b, self.c))
        count, rows, depth = len(a), self.shape.rows, self.shape.depth
        left, right, total = np.empty((count, rows, depth)), np.empty((count, depth, 8)), np.empty((count, rows, 8))
        for register in range(len(self.a)):
            left[:, *self.shape.left(register)] = a[:, register]
        for register in range(len(self.b)):
            right[:, _IN_GROUP + 4 * register, _GROUP] = b[:, register]
        for register in range(len(self.c)):
            total[:, *self.shape.result(register)] = c[:, register]
        for k in range(depth):
            total = _added(left[:, :, k, None], right[:, k, None, :], total)
        for register, target in enumerate(self.results):
            if target is not None:
                column = np.ascontiguousarray(total[:, *self.shape.result(register)]).view(U64)
                batch.put(target, spread_over(batch, warps, column))


def _added(left: Array, right: Array, total: Array) -> Array:
    a, b = (np.broadcast_to(factor, total.shape).reshape(-1) for factor in (left, right))
    return float64.fma(a, b, total.reshape(-1)).reshape(total.shape)


def _registers(batch: Batch, slots: Sequence[int], warps: Array | slice) -> Array:
    """(warps, registers, lanes)"""
    columns = [batch.spread(batch.values[slot]).view(F64).reshape(-1, WARP)[warps] for slot in slots]
    return np.stack(columns, axis=1)
