"""One kernel of the corpus: its PTX, its inputs, and how close the emulated device has to come."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpus.checks import EXACT, Check
from corpus.values import bits, operands, width_of
from ptx_kernels import element_body, kernel_text

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 128


@dataclass(frozen=True)
class Entry:
    """`outputs`: what these buffers hold before the launch. Parameters are the inputs' addresses, then the outputs'."""

    name: str
    ptx: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    checks: tuple[Check, ...]
    grid: int = 1
    block: int = BLOCK
    shared: int = 0
    cluster: int = 1

    @property
    def digest(self) -> str:
        """Of everything that the results depend on; not of how the text is laid out."""
        parts = [" ".join(self.ptx.split()).encode(), repr((self.grid, self.block, self.shared, self.cluster)).encode()]
        parts += [array.tobytes() for array in (*self.inputs, *self.outputs)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def instruction(
    name: str,
    text: str,
    inputs: Sequence[Array],
    result: str | np.dtype,
    *,
    check: Check = EXACT,
    predicate: bool = False,
    before: str = "",
) -> Entry:
    """An instruction on each element of the inputs, whose number is a multiple of the block."""
    count, dtype = inputs[0].size, np.dtype(result)
    body = element_body(text, [array.itemsize for array in inputs], dtype.itemsize, predicate=predicate, before=before)
    ptx = kernel_text(body, len(inputs) + 1)
    return Entry(name, ptx, tuple(inputs), (np.zeros(count, dtype),), (check,), count // BLOCK)


def threads(
    name: str,
    body: str,
    *,
    results: Sequence[str | np.dtype] = ("u4",),
    inputs: Sequence[Array] = (),
    checks: Sequence[Check] = (),
    block: int = BLOCK,
    grid: int = 1,
    shared: int = 0,
    cluster: int = 1,
    before: str = "",
    outputs: Sequence[Array] = (),
) -> Entry:
    """A body with %t the thread's number. It leaves one value per thread in %r0 (%h0, %d0) for the first result.

    `outputs`: buffers that the body itself writes to, after the inputs and before the results.
    """
    made = [np.zeros(grid * block, np.dtype(each)) for each in results]
    first = len(inputs) + len(outputs)
    stores = [_store(place, array, first + place) for place, array in enumerate(made)]
    buffers = (*outputs, *made)
    ptx = kernel_text("\n".join([body, *stores]), len(inputs) + len(buffers), before=before)
    every = (*checks, *(EXACT,) * (len(buffers) - len(checks)))
    return Entry(name, ptx, tuple(inputs), buffers, every, grid, block, shared, cluster)


def _store(place: int, array: Array, parameter: int) -> str:
    width = array.itemsize
    register = {1: "h", 2: "h", 4: "r", 8: "d"}[width]
    return f"mad.wide.u32 %o, %t, {width}, %a{parameter}; st.global.b{8 * width} [%o], %{register}{place};"


def words(name: str, count: int, dtype: str = "u4") -> Array:
    """Hashed bits, other ones for each name."""
    return bits(name, count, np.dtype(dtype))


def applied(
    opcode: str, kinds: Sequence[str], result: str, *, count: int = 0, tail: str = "", check: Check = EXACT
) -> Entry:
    """One opcode, named for it, on its kinds of operands: u32, f16x2, count … `tail`: more operands, as text.

    `result` "pred": 1 or 0.
    """
    places = ", ".join("{}" for _ in range(len(kinds) + 1))
    inputs = operands(kinds, opcode, count or {1: 512, 2: 1024}.get(len(kinds), 1280))
    dtype = np.dtype("u1" if result == "pred" else f"u{width_of(result) // 8}")
    text = f"{opcode} {places}{tail}"
    return instruction(opcode, text, inputs, dtype, check=check, predicate=result == "pred")
