"""wgmma as steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cutesmith_evaluator.emulator.fragments import SIZES
from cutesmith_evaluator.emulator.kinds import BOOL, U32, U64, Words, unsupported
from cutesmith_evaluator.emulator.mma import of_integers
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Group, Immediate, Operand
from cutesmith_evaluator.emulator.tensor_cores import SMALLEST_EXPONENTS, Accumulator, Rule, accumulate, rule_of
from cutesmith_evaluator.emulator.wgmma import CommitGroup, GroupFence, MultiplyGroup, Product, Tile, WaitGroup

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.lowering import Lowering

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_DEPTH = 32  # bytes along k
_INTEGERS = ("s8", "u8")
_EIGHT_BIT = Rule(32, 13, -1000, 13)  # published for sums without an accumulator


def _multiply(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.one_of(("sync",))
    words.one_of(("aligned",))
    shape = next((found for word in instruction.words if (found := _SHAPE.match(word))), None)
    if shape is None:
        raise unsupported(instruction)
    words.one_of((shape[0],))
    clamped = words.flag("satfinite")
    kind, a, b = (words.one_of((*SIZES, "f32", "s32")) for _ in range(3))
    words.done()
    columns, depth = int(shape[1]), int(shape[2])
    if a not in SIZES or b not in SIZES or depth * SIZES[a] != _DEPTH or columns % 8 or not 8 <= columns <= 256:
        raise unsupported(instruction)
    d, left, right, scale, *numbers = instruction.operands
    signs, outer = _options(words, numbers, a, registers=isinstance(left, Group))
    results, registers = lowering.targets(d, instruction), _slots(lowering, words, d)
    if len(registers) != columns // (4 if kind == "f16" else 2):
        raise unsupported(instruction, "with other registers")
    return MultiplyGroup(
        _slots(lowering, words, left)
        if isinstance(left, Group)
        else Tile(lowering.slots.source(left, U64, instruction), a, 64, outer[0]),
        Tile(lowering.slots.source(right, U64, instruction), b, columns, outer[1]),
        registers,
        results,
        (a, b),
        kind,
        lowering.slots.source(scale, BOOL, instruction),
        signs,
        _product(lowering, words, (a, b), kind, clamped),
        instruction.place,
    )


def _options(
    words: Words, numbers: Sequence[Operand], kind: str, *, registers: bool
) -> tuple[tuple[int, int], tuple[bool, bool]]:
    """The signs of A and B, and whether k is their outer dimension."""
    values = [each.bits for each in numbers if isinstance(each, Immediate)]
    wide = SIZES[kind] == 2
    wanted = 0 if kind in _INTEGERS else 2 + (0 if not wide else 1 if registers else 2)
    if len(values) != len(numbers) or len(values) != wanted or any(abs(sign) != 1 for sign in values[:2]):
        raise unsupported(words.instruction, "its options")
    first, second = values[:2] or (1, 1)
    outer = [bool(value) for value in values[2:]]
    return (first, second), ((outer[0], outer[1]) if len(outer) == 2 else (False, bool(outer and outer[0])))


def _slots(lowering: Lowering, words: Words, operand: Operand) -> list[int]:
    if not isinstance(operand, Group):
        raise unsupported(words.instruction)
    return [lowering.slots.source(item, U32, words.instruction) for item in operand.items]


def _product(lowering: Lowering, words: Words, kinds: tuple[str, str], kind: str, clamped: bool) -> Product:
    a, b = kinds
    if kind == "s32" and a in _INTEGERS and b in _INTEGERS:
        return partial(of_integers, clamped=clamped)
    if clamped or a in _INTEGERS or b in _INTEGERS or kind not in ("f32", "f16") or (a != b and SIZES[a] != 1):
        raise unsupported(words.instruction)
    if kind == "f16" and a in ("bf16", "tf32"):
        raise unsupported(words.instruction)
    form: Accumulator = "f16" if kind == "f16" else "f32"
    rule = _EIGHT_BIT if SIZES[a] == 1 else rule_of(lowering.arch, a, form)
    smallest = (SMALLEST_EXPONENTS[a], SMALLEST_EXPONENTS[b])
    return partial(accumulate, smallest=smallest, rule=rule, accumulator=form)


def _fence(lowering: Lowering, words: Words) -> Step:
    return GroupFence(words.instruction.place)


def _commit(lowering: Lowering, words: Words) -> Step:
    return CommitGroup(words.instruction.place)


def _wait(lowering: Lowering, words: Words) -> Step:
    number = words.instruction.operands[0]
    if not isinstance(number, Immediate):
        raise unsupported(words.instruction)
    return WaitGroup(number.bits, words.instruction.place)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    "wgmma.mma_async": _multiply,
    "wgmma.fence.sync.aligned": _fence,
    "wgmma.commit_group.sync.aligned": _commit,
    "wgmma.wait_group.sync.aligned": _wait,
}
