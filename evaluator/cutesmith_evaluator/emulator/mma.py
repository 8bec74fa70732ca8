"""mma.sync: a warp multiplies small matrices whose elements its lanes hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import eighths, halves
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import U32, Words, unsupported
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Group, Operand
from cutesmith_evaluator.emulator.rounding import F32
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

_SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
_SHAPES = {4: ("m16n8k4", "m16n8k8"), 2: ("m16n8k8", "m16n8k16"), 1: ("m16n8k16", "m16n8k32")}
_ROWS, _COLUMNS, _GROUPS, _QUAD = 16, 8, 8, 4


@dataclass
class Multiply:
    """`a`, `b`, `c`: slots of the operands' registers; `kinds`: the elements of a and b."""

    a: Sequence[int]
    b: Sequence[int]
    c: Sequence[int]
    results: Sequence[Target | None]
    kinds: tuple[str, str]
    accumulator: str
    product: Product
    place: Place | None
    family: str = "matrix multiply"

    def run(self, batch: Batch) -> None:
        warps = running_warps(batch, "mma.sync")
        a = _left(_stacked(batch, self.a, warps), self.kinds[0])
        b = _right(_stacked(batch, self.b, warps), self.kinds[1])
        c = _unpacked(_stacked(batch, self.c, warps), self.accumulator)
        packed = _packed(self.product(a, b, c), self.accumulator)
        for target, column in zip(self.results, packed, strict=True):
            if target is not None:
                batch.put(target, spread_over(batch, warps, column))


def _stacked(batch: Batch, slots: Sequence[int], warps: Array | slice) -> Array:
    """(warps, registers, lanes)"""
    columns = [batch.spread(batch.values[slot]).view(U32).reshape(-1, 32)[warps] for slot in slots]
    return np.stack(columns, axis=1)


def _elements(registers: Array, kind: str) -> Array:
    """(warps, registers, groups, quad, elements of a register)"""
    narrow = np.ascontiguousarray(registers).view(f"u{_SIZES[kind]}")
    return _decoded(narrow.reshape(*registers.shape[:2], _GROUPS, _QUAD, -1), kind)


def _decoded(bits: Array, kind: str) -> Array:
    match kind:
        case "f16" | "bf16":
            return halves.widen(bits, kind)
        case "tf32":
            return (bits & np.uint32(0xFFFFE000)).view(F32)
        case "s8" | "u8":
            return bits.view(np.int8 if kind == "s8" else np.uint8).astype(np.int32)
        case _:
            return eighths.widen(bits, kind)


def _left(registers: Array, kind: str) -> Array:
    """(warps, 16, k) of A: a register holds elements side by side of row g or g + 8, registers 2 and 3 further on."""
    parts = _elements(registers, kind)
    warps, count, _, _, width = parts.shape
    parts = parts.reshape(warps, count // 2, 2, _GROUPS, _QUAD, width)
    return parts.transpose(0, 2, 3, 1, 4, 5).reshape(warps, _ROWS, -1)


def _right(registers: Array, kind: str) -> Array:
    """(warps, 8, k) of B, whose columns are held like rows of A."""
    parts = _elements(registers, kind)
    return parts.transpose(0, 2, 1, 3, 4).reshape(len(parts), _COLUMNS, -1)


def _unpacked(registers: Array, kind: str) -> Array:
    """(warps, 16, 8) of C: two neighbours of row g, then two of row g + 8."""
    if kind == "f16":
        parts = halves.widen(np.ascontiguousarray(registers).view(np.uint16), "f16")
        parts = parts.reshape(-1, 2, _GROUPS, _QUAD, 2)
    else:
        values = registers.view(np.int32 if kind == "s32" else F32)
        parts = values.reshape(-1, 2, 2, _GROUPS, _QUAD).transpose(0, 1, 3, 4, 2)
    return parts.reshape(-1, _ROWS, _COLUMNS)


def _packed(values: Array, kind: str) -> list[Array]:
    """The registers of D, (warps, lanes) each."""
    parts = values.reshape(-1, 2, _GROUPS, _QUAD, 2)
    if kind == "f16":
        words = np.ascontiguousarray(halves.narrow(parts, "f16")).view(U32)
        return [words[:, half].reshape(-1, 32) for half in range(2)]
    return [
        np.ascontiguousarray(parts[:, half, :, :, place]).view(U32).reshape(-1, 32)
        for half in range(2)
        for place in range(2)
    ]


def make(lowering: Lowering, words: Words) -> Step:
    """mma.sync.aligned.shape.row.col{.satfinite}.d.a.b.c"""
    words.one_of(("aligned",))
    words.one_of(("row",))
    words.one_of(("col",))
    shape = words.one_of(tuple({name for names in _SHAPES.values() for name in names}))
    clamped = words.flag("satfinite")
    d, a, b, c = (words.one_of((*_SIZES, "f32", "s32")) for _ in range(4))
    words.done()
    if d != c or a not in _SIZES or b not in _SIZES or shape not in _SHAPES[_SIZES[a]]:
        raise unsupported(words.instruction)
    product = _product(lowering, words, (a, b), c, clamped)
    instruction = words.instruction
    results, *operands = instruction.operands
    left, right, added = (_slots(lowering, words, operand) for operand in operands)
    targets = lowering.targets(results, instruction)
    count = 2 if c == "f16" else 4
    held = _ROWS * int(shape.rpartition("k")[2]) * _SIZES[a] // 128  # registers of a lane
    if (len(left), len(right), len(added), len(targets)) != (held, held // 2, count, count):
        raise unsupported(instruction, "with other registers")
    return Multiply(left, right, added, targets, (a, b), c, product, instruction.place)


def _slots(lowering: Lowering, words: Words, operand: Operand) -> list[int]:
    items = operand.items if isinstance(operand, Group) else (operand,)
    return [lowering.slots.source(item, U32, words.instruction) for item in items]


def _product(lowering: Lowering, words: Words, kinds: tuple[str, str], accumulator: str, clamped: bool) -> Product:
    a, b = kinds
    if accumulator == "s32" and {a, b} <= {"s8", "u8"}:
        return partial(_of_integers, clamped=clamped)
    if (a != b and _SIZES[a] != 1) or clamped or a in ("s8", "u8") or accumulator not in ("f32", "f16"):
        raise unsupported(words.instruction)
    if accumulator == "f16" and a not in ("f16", "e4m3", "e5m2"):
        raise unsupported(words.instruction)
    form: Accumulator = "f16" if accumulator == "f16" else "f32"
    if _SIZES[a] == 1:
        smallest = (SMALLEST_EXPONENTS[a], SMALLEST_EXPONENTS[b])
        if is_hopper(lowering.arch):
            return partial(_of_eighths_as_halves, rule=rule_of(lowering.arch, "f16", form), accumulator=form)
        return partial(accumulate, smallest=smallest, rule=EIGHT_BIT, accumulator=form)
    least = SMALLEST_EXPONENTS[a]
    return partial(accumulate, smallest=(least, least), rule=rule_of(lowering.arch, a, form), accumulator=form)


def _of_eighths_as_halves(a: Array, b: Array, c: Array, *, rule: Any, accumulator: Accumulator) -> Array:
    """Hopper's mma.sync widens to float16: lower halves of all registers, then upper ones, then c on its own."""
    if a.shape[-1] == 16:
        return accumulate(a, b, c, (-14, -14), rule, accumulator)
    total = np.zeros_like(c)
    upper = np.arange(a.shape[-1]) % 4 >= 2
    for part in (~upper, upper):
        total = accumulate(a[..., part], b[..., part], total, (-14, -14), rule, accumulator)
    total = total + c
    return halves.widen(halves.narrow(total, "f16"), "f16") if accumulator == "f16" else total


def _of_integers(a: Array, b: Array, c: Array, *, clamped: bool) -> Array:
    total = np.matmul(a, b.mT).astype(np.int64) + c
    if clamped:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.int32)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {"mma.sync": make}
