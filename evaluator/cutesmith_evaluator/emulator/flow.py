"""The basic blocks of a kernel, and which registers may be written without keeping what was there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from cutesmith_evaluator.emulator.collectives import members_of
from cutesmith_evaluator.emulator.ptx import Group, Instruction, Kernel, Operand, Pair, Register, Symbol

_ENDS = ("bra", "ret", "exit", "barrier", "trap")
_BY_WARPS = ("mbarrier", "wgmma", "mapa")
_GATES = ("mbarrier.test_wait", "mbarrier.try_wait", "barrier.cluster.wait", "wgmma.fence")
_REMOTE = ["st", "async"]
_NO_RESULT = ("st", "red", "bra", "bar", "barrier", "ret", "exit", "membar", "fence", "prefetch")


@dataclass(frozen=True)
class Flow:
    """`starts`: index of each block's first instruction. `targets`: block by label."""

    kernel: Kernel
    starts: tuple[int, ...]
    targets: dict[str, int]
    in_loop: tuple[bool, ...]
    definitions: Counter[str]
    waits: bool  # whether threads may wait for others anywhere in the kernel
    by_warps: bool  # whether they do so by other means than whole blocks and warps

    def instructions(self, block: int) -> range:
        ends = (*self.starts[1:], len(self.kernel.body))
        return range(self.starts[block], ends[block])

    def keeps_old(self, register: Register, block: int) -> bool:
        """Whether threads that do not run may still want the register's old value.

        Not where it is written in one place, and all threads that come there come at once: they alone read it. In
        a loop, or where threads wait for others, some come later, and must not overwrite what those before them have.
        """
        return self.waits or self.definitions[register.name] > 1 or self.in_loop[block]


def flow_of(kernel: Kernel) -> Flow:
    starts = _starts(kernel)
    ordered = tuple(sorted(start for start in starts if start < len(kernel.body)))
    numbers = {start: number for number, start in enumerate(ordered)}
    targets = {label: numbers[start] for label, start in kernel.labels.items() if start in numbers}
    definitions = Counter(name for each in kernel.body for name in _written(each))
    by_warps = any(_orders_warps(each) for each in kernel.body)
    waits = by_warps or any(members_of(each) or each.words[0] in ("bar", "barrier") for each in kernel.body)
    return Flow(kernel, ordered, targets, _in_loop(kernel, ordered, targets), definitions, waits, by_warps)


def _starts(kernel: Kernel) -> set[int]:
    """A warp-wide instruction begins a block, but for one whose lanes have come together earlier in it."""
    starts = {0, *kernel.labels.values()}
    together: Operand | None = None
    for index, instruction in enumerate(kernel.body):
        if index in starts:
            together = None
        if is_gate(instruction):
            starts.add(index)
            together = None
        members = members_of(instruction)
        if members is not None and members != together:
            starts.add(index)
            together = members
        if ends_block(instruction):
            starts.add(index + 1)
    return starts


def ends_block(instruction: Instruction) -> bool:
    first, *rest = instruction.words
    if rest[:1] == ["cluster"]:
        return False
    return first in _ENDS or (first == "bar" and rest[:1] != ["warp"])


def is_gate(instruction: Instruction) -> bool:
    """Whether threads may be held before it until something has come to pass."""
    return any(instruction.opcode.startswith(name) for name in _GATES)


def _orders_warps(instruction: Instruction) -> bool:
    first, *rest = instruction.words
    counted = first in ("bar", "barrier") and rest[:1] != ["warp"] and len(instruction.operands) > 1
    return counted or first in _BY_WARPS or "bulk" in rest or rest[:1] == ["cluster"] or [first, *rest[:1]] == _REMOTE


def _written(instruction: Instruction) -> list[str]:
    if instruction.words[0] in _NO_RESULT or not instruction.operands:
        return []
    return list(registers_of(instruction.operands[0]))


def registers_of(operand: Operand) -> list[str]:
    match operand:
        case Register(name):
            return [name]
        case Group(items):
            return [name for item in items for name in registers_of(item)]
        case Pair(first, second):
            return [*registers_of(first), *registers_of(second)]
        case _:
            return []


def _in_loop(kernel: Kernel, starts: tuple[int, ...], targets: dict[str, int]) -> tuple[bool, ...]:
    """Blocks between a jump back and its target; in the order of the text, as the machine runs them."""
    inside = [False] * len(starts)
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(kernel.body)
        for instruction in kernel.body[start:end]:
            for operand in instruction.operands if instruction.words[0] == "bra" else ():
                if isinstance(operand, Symbol) and targets.get(operand.name, number + 1) <= number:
                    inside[targets[operand.name] : number + 1] = [True] * (number + 1 - targets[operand.name])
    return tuple(inside)
