"""mma.sync: a warp multiplies small matrices whose elements its lanes hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import halves
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.fragments import (
    ROWS,
    SIZES,
    left_operand,
    packed_registers,
    right_operand,
    stacked,
    unpacked,
)
from cutesmith_evaluator.emulator.kinds import U32, U64, Words, unsupported
from cutesmith_evaluator.emulator.mma_doubles import MultiplyDoubles, double_shape
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Group, Operand
from cutesmith_evaluator.emulator.rounding import canonical
from cutesmith_evaluator.emulator.steps import Target
from cutesmith_evaluator.emulator.tensor_cores import (
    EIGHT_BIT,
    SMALLEST_EXPONENTS,
    Accumulator,
    accumulate,
    is_hopper,
    rule_of,
)
from cutesmith_evaluator.emulator.whole_warps import running_warps, spread_over

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.lowering import Lowering

Array = np.ndarray[Any, np.dtype[Any]]
Product = Callable[[Array, Array, Array], Array]  # (w, 16, k), (w, 8, k), (w, 16, 8) → (w, 16, 8)

_SHAPES = {4: ("m16n8k4", "m16n8k8"), 2: ("m16n8k8", "m16n8k16"), 1: ("m16n8k16", "m16n8k32")}
_SMALL = "m8n8k16"  # of 8-bit integers: the upper half of m16n8k16


@dataclass
class Multiply:
    """`a`, `b`, `c`: slots of the operands' registers; `kinds`: the elements of a and b. `small`: 8 rows, not 16."""

    a: Sequence[int]
    b: Sequence[int]
    c: Sequence[int]
    results: Sequence[Target | None]
    kinds: tuple[str, str]
    accumulator: str
    product: Product
    place: Place | None
    small: bool = False
    family: str = "matrix multiply"

    def run(self, batch: Batch) -> None:
        warps = running_warps(batch, "mma.sync")
        a = left_operand(self._filled(batch, self.a, warps), self.kinds[0])
        b = right_operand(stacked(batch, self.b, warps), self.kinds[1])
        c = unpacked(self._filled(batch, self.c, warps), self.accumulator)
        batch.counts.products += c.size * a.shape[-1]
        packed = packed_registers(self.product(a, b, c), self.accumulator)
        for target, column in zip(self.results, packed[: len(self.results)], strict=True):
            if target is not None:
                batch.put(target, spread_over(batch, warps, column))

    def _filled(self, batch: Batch, slots: Sequence[int], warps: Array | slice) -> Array:
        """The registers, with zeros for the rows that a small shape has not."""
        held = stacked(batch, slots, warps)
        return np.concatenate([held, np.zeros_like(held)], axis=1) if self.small else held


def make(lowering: Lowering, words: Words) -> Step:
    """mma.sync.aligned.shape.row.col{.satfinite}.d.a.b.c"""
    words.one_of(("aligned",))
    if words.instruction.words[-1] == "f64":
        return _of_doubles(lowering, words)
    words.one_of(("row",))
    words.one_of(("col",))
    shape = words.one_of((*{name for names in _SHAPES.values() for name in names}, _SMALL))
    clamped = words.flag("satfinite")
    d, a, b, c = (words.one_of((*SIZES, "f32", "s32")) for _ in range(4))
    words.done()
    small = shape == _SMALL and c == "s32"
    if d != c or a not in SIZES or b not in SIZES or (shape not in _SHAPES[SIZES[a]] and not small):
        raise unsupported(words.instruction)
    product = _product(lowering, words, (a, b), c, clamped)
    instruction = words.instruction
    results, *operands = instruction.operands
    left, right, added = (_slots(lowering, words, operand) for operand in operands)
    targets = lowering.targets(results, instruction)
    count = 2 if c == "f16" else 4
    held = ROWS * int(shape.rpartition("k")[2]) * SIZES[a] // 128  # registers of a lane
    wanted = (held // 2, held // 2, count // 2) if small else (held, held // 2, count)
    if (len(left), len(right), len(added)) != wanted or len(targets) != len(added):
        raise unsupported(instruction, "with other registers")
    return Multiply(left, right, added, targets, (a, b), c, product, instruction.place, small)


def _of_doubles(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    shape = double_shape(words)
    results, *operands = instruction.operands
    a, b, c = (_slots(lowering, words, operand, U64) for operand in operands)
    targets = lowering.targets(results, instruction)
    if (len(a), len(b), len(c)) != shape.registers or len(targets) != len(c):
        raise unsupported(instruction, "with other registers")
    return MultiplyDoubles(shape, a, b, c, targets, instruction.place)


def _slots(lowering: Lowering, words: Words, operand: Operand, kind: np.dtype = U32) -> list[int]:
    items = operand.items if isinstance(operand, Group) else (operand,)
    return [lowering.slots.source(item, kind, words.instruction) for item in items]


def _product(lowering: Lowering, words: Words, kinds: tuple[str, str], accumulator: str, clamped: bool) -> Product:
    a, b = kinds
    if accumulator == "s32" and {a, b} <= {"s8", "u8"}:
        return partial(of_integers, clamped=clamped)
    if (a != b and SIZES[a] != 1) or clamped or a in ("s8", "u8") or accumulator not in ("f32", "f16"):
        raise unsupported(words.instruction)
    if accumulator == "f16" and a not in ("f16", "e4m3", "e5m2"):
        raise unsupported(words.instruction)
    form: Accumulator = "f16" if accumulator == "f16" else "f32"
    if SIZES[a] == 1:
        smallest = (SMALLEST_EXPONENTS[a], SMALLEST_EXPONENTS[b])
        if is_hopper(lowering.arch):
            return partial(of_eighths_as_halves, rule=rule_of(lowering.arch, "f16", form), accumulator=form)
        return partial(accumulate, smallest=smallest, rule=EIGHT_BIT, accumulator=form)
    least = SMALLEST_EXPONENTS[a]
    return partial(accumulate, smallest=(least, least), rule=rule_of(lowering.arch, a, form), accumulator=form)


def of_eighths_as_halves(a: Array, b: Array, c: Array, *, rule: Any, accumulator: Accumulator) -> Array:
    """Hopper's mma.sync widens to float16: lower halves of all registers, then upper ones, then c on its own."""
    total = np.zeros_like(c)
    upper = np.arange(a.shape[-1]) % 4 >= 2
    for part in (~upper, upper):
        total = accumulate(a[..., part], b[..., part], total, (-14, -14), rule, accumulator)
    total = canonical(total + c)
    return halves.widen(halves.narrow(total, "f16"), "f16") if accumulator == "f16" else total


def of_integers(a: Array, b: Array, c: Array, *, clamped: bool) -> Array:
    total = np.matmul(a, b.mT).astype(np.int64) + c
    if clamped:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.int32)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {"mma.sync": make}
