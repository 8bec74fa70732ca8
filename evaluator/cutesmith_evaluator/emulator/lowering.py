"""One instruction to one step: what the makers of the steps share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.access import Location
from cutesmith_evaluator.emulator.collectives import members_of
from cutesmith_evaluator.emulator.flow import Flow, registers_of
from cutesmith_evaluator.emulator.kinds import U32, U64, Words, unsupported
from cutesmith_evaluator.emulator.makers import MAKERS
from cutesmith_evaluator.emulator.operation import Operation
from cutesmith_evaluator.emulator.operations import OPERATIONS
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import (
    Address,
    Group,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
)
from cutesmith_evaluator.emulator.slots import Slots
from cutesmith_evaluator.emulator.steps import Compute, Target


class Lowering:
    """Makes the steps of one kernel. `grain`: the smallest access to shared or local memory so far, in bytes."""

    def __init__(self, kernel: Kernel, slots: Slots, flow: Flow, arch: str) -> None:
        self.grain = 16
        self.kernel, self.slots, self.arch = kernel, slots, arch
        self._flow = flow
        self._block = 0
        asynchronous = [each for each in kernel.body if each.words[:2] == ["wgmma", "mma_async"]]
        self._accumulators = {name for each in asynchronous for name in registers_of(each.operands[0])}
        self._fragments = {name for each in asynchronous for name in registers_of(each.operands[1])}

    def step(self, instruction: Instruction, block: int) -> Step:
        """Raises UnsupportedError."""
        self._block = block
        found = _maker(instruction)
        if found is not None:
            words, maker = found
            return maker(self, words)
        words = Words(instruction)
        if words.name not in OPERATIONS:
            raise unsupported(instruction)
        return self.compute(words, OPERATIONS[words.name](words))

    def member_slot(self, instruction: Instruction) -> int | None:
        """The slot of the lanes that a warp-wide instruction waits for."""
        members = members_of(instruction)
        return None if members is None else self.slots.source(members, U32, instruction)

    def touched_by(self, instruction: Instruction) -> list[int]:
        """The slots of sums of a wgmma that another instruction reads or writes, and of operands that it writes."""
        if not self._accumulators or instruction.words[0] == "wgmma":
            return []
        names = {name for operand in instruction.operands for name in registers_of(operand)} & self._accumulators
        names |= self._fragments.intersection(registers_of(instruction.operands[0]) if instruction.operands else ())
        return [self.slots.register(Register(name)) for name in sorted(names)]

    def note_access(self, space: str, size: int) -> None:
        """Shared and local memory is looked at in pieces no larger than its smallest access."""
        if space in ("shared", "local", "generic"):
            self.grain = min(self.grain, size)

    def target(self, operand: Operand, instruction: Instruction) -> Target | None:
        if isinstance(operand, Sink):
            return None
        if not isinstance(operand, Register):
            raise unsupported(instruction, "its result")
        slot = self.slots.register(operand)
        return Target(slot, self.slots.dtype(slot), self._flow.keeps_old(operand, self._block))

    def targets(self, operand: Operand, instruction: Instruction) -> list[Target | None]:
        match operand:
            case Group(items):
                return [self.target(item, instruction) for item in items]
            case Pair(first, second):
                return [self.target(first, instruction), self.target(second, instruction)]
            case _:
                return [self.target(operand, instruction)]

    def location(self, operand: Operand, space: str, instruction: Instruction) -> Location:
        if not isinstance(operand, Address):
            raise unsupported(instruction, "its address")
        base = operand.base
        narrow = isinstance(base, Register) and self.slots.dtype(self.slots.register(base)).itemsize == 4
        slot = self.slots.source(base, U32 if narrow else U64, instruction)
        return Location(space, slot, operand.offset)

    def compute(self, words: Words, operation: Operation) -> Compute:
        instruction = words.instruction
        targets = self.targets(instruction.operands[0], instruction)
        operands = instruction.operands[1:]
        if len(operands) != len(operation.sources) or len(targets) != len(operation.results):
            raise unsupported(instruction, f"with {len(operands)} operands")
        function, sources = operation.function, []
        for place, (operand, dtype) in enumerate(zip(operands, operation.sources, strict=True)):
            if isinstance(operand, Negated):
                function = _negating(function, place)
                operand = operand.register
            sources.append((self.slots.source(operand, dtype, instruction, relaxed=operation.relaxed), dtype))
        for target, dtype in zip(targets, operation.results, strict=True):
            narrower = target is not None and target.dtype.itemsize != dtype.itemsize
            if narrower and not (operation.relaxed and target and target.dtype.itemsize > dtype.itemsize):
                raise unsupported(instruction, "its result has another width")
        return Compute(function, sources, targets, instruction.place, _family(instruction))


def _maker(instruction: Instruction) -> tuple[Words, Callable[[Lowering, Words], Step]] | None:
    """Of the longest name: cp.async.bulk before cp.async. None for plain arithmetic."""
    for length in range(len(instruction.words), 0, -1):
        name = ".".join(instruction.words[:length])
        if name in MAKERS:
            return Words(instruction, length), MAKERS[name]
    return None


def _negating(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    def run(*values: np.ndarray) -> np.ndarray:
        return function(*(~value if number == place else value for number, value in enumerate(values)))

    return run


def _family(instruction: Instruction) -> str:
    """What the instruction counts as."""
    first = instruction.words[0]
    if first in ("setp", "selp", "testp"):
        return "compare"
    if first == "cvt":
        return "convert"
    if first in ("ex2", "lg2", "rsqrt", "tanh", "sin", "cos", "rcp", "sqrt"):
        return "special function"
    kinds = set(instruction.words[1:])
    return "float" if kinds & {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2"} else "integer"
