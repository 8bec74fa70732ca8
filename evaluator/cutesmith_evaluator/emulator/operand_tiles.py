"""Operands of wgmma in shared memory: where each 16 bytes of a tile lie, by the descriptor that names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.boxes import swizzled
from cutesmith_evaluator.emulator.faults import UnsupportedError

Array = np.ndarray[Any, np.dtype[Any]]
_BITS = {0: 0, 1: 3, 2: 2, 3: 1}  # that a mode of the descriptor mixes: none, 128, 64 and 32 bytes
_CHUNK, _CORE = 16, 8  # bytes; rows of a core matrix
_DEPTH = 32  # bytes of a row along k that one instruction multiplies


@dataclass(frozen=True)
class OperandTile:
    """Of a 64-bit descriptor, in bytes. `leading` and `step`: between parts of the tile, as its form has them."""

    start: int
    leading: int
    step: int
    swizzle: int

    @property
    def span(self) -> int:
        return _CHUNK << self.swizzle

    def along_k(self, rows: Array) -> Array:
        """(rows, 2) addresses of the 16 bytes that a row's 32 are made of."""
        chunks = np.arange(_DEPTH // _CHUNK)
        between = self.leading if self.swizzle == 0 else _CHUNK
        within = (rows % _CORE) * self.span + (rows // _CORE) * self.step
        return swizzled(self.start + within[:, None] + chunks * between, self.swizzle)

    def along_rows(self, first: int, count: int) -> Array:
        """(16, chunks) addresses where k is the outer dimension of 16-bit elements: for each k, 8 rows a chunk."""
        depth = np.arange(_DEPTH // 2)
        chunks = first // 8 + np.arange(count // 8)
        if self.swizzle == 0:
            outer, inner = chunks * self.step, (depth % _CORE) * _CHUNK + (depth // _CORE) * self.leading
        else:
            wide = 1 << self.swizzle
            outer = (chunks % wide) * _CHUNK + (chunks // wide) * self.leading
            inner = (depth % _CORE) * self.span + (depth // _CORE) * self.step
        return swizzled(self.start + inner[:, None] + outer, self.swizzle)


def described(bits: int) -> OperandTile:
    """Raises UnsupportedError."""
    if bits >> 49 & 7:
        raise UnsupportedError("a wgmma descriptor with a base offset is not emulated yet")
    start, leading, step = (16 * (bits >> place & 0x3FFF) for place in (0, 16, 32))
    return OperandTile(start, leading, step, _BITS[bits >> 62])
