"""bar and barrier: sync, arrive and red as the ends of blocks."""

from __future__ import annotations

from cutesmith_evaluator.emulator.kinds import BOOL, U32, Words, unsupported
from cutesmith_evaluator.emulator.program import Barrier, Reduction
from cutesmith_evaluator.emulator.ptx import Instruction, Negated, Operand, Register
from cutesmith_evaluator.emulator.slots import Slots


def barrier_of(instruction: Instruction, slots: Slots) -> Barrier:
    """Raises UnsupportedError."""
    words = Words(instruction)
    words.flag("cta")
    form = words.one_of(("sync", "arrive", "red"))
    aligned = words.flag("aligned") or words.name == "bar"
    operands = instruction.operands
    reduction = None
    if form == "red":
        reduction = _reduction(words, slots, operands[0], operands[-1])
        operands = operands[1:-1]
    words.done()
    guard = (slots.register(instruction.guard.register), instruction.guard.negated) if instruction.guard else None
    number, *count = [slots.source(operand, U32, instruction) for operand in operands]
    if len(count) > 1 or (form == "arrive" and not count):
        raise unsupported(instruction)
    waits = form != "arrive"
    return Barrier(number, count[0] if count else None, instruction.place, waits, aligned, guard, reduction)


def _reduction(words: Words, slots: Slots, result: Operand, predicate: Operand) -> Reduction:
    name = words.one_of(("popc", "and", "or"))
    words.kind(("u32",) if name == "popc" else ("pred",))
    negated = isinstance(predicate, Negated)
    source = predicate.register if isinstance(predicate, Negated) else predicate
    if not isinstance(result, Register):
        raise unsupported(words.instruction)
    slot = slots.register(result)
    dtype = U32 if name == "popc" else BOOL
    if slots.dtype(slot) != dtype:
        raise unsupported(words.instruction, "its result")
    return Reduction(name, slots.source(source, BOOL, words.instruction), negated, slot, dtype)
