"""From a kernel's instructions to a program of basic blocks."""

from __future__ import annotations

from typing import cast

from cutesmith_evaluator.emulator.barrier_forms import barrier_of
from cutesmith_evaluator.emulator.faults import UnsupportedError
from cutesmith_evaluator.emulator.flow import Flow, ends_block, flow_of, is_gate
from cutesmith_evaluator.emulator.kinds import DTYPES, Words, understood, unsupported
from cutesmith_evaluator.emulator.layout import Layout
from cutesmith_evaluator.emulator.lowering import Lowering
from cutesmith_evaluator.emulator.program import Barrier, BasicBlock, Branch, Exit, Gate, Program
from cutesmith_evaluator.emulator.ptx import Instruction, Kernel, Symbol
from cutesmith_evaluator.emulator.slots import Slots
from cutesmith_evaluator.emulator.steps import Guarded
from cutesmith_evaluator.emulator.wgmma import Watched

U32 = DTYPES["u32"]
_LOCAL_BYTES = 512 << 10


def compile_kernel(kernel: Kernel, layout: Layout, arch: str) -> Program:
    """`arch`: the module's target, like "sm_90a".

    Raises UnsupportedError, with the kernel and the line, for the first instruction that is not known.
    """
    try:
        with understood():
            return _compile(kernel, layout, arch)
    except UnsupportedError as error:
        where = f", used in kernel {kernel.name}"
        raise UnsupportedError(f"{error.message}{where}", kernel.name, error.place) from None


def _compile(kernel: Kernel, layout: Layout, arch: str) -> Program:
    if layout.local_bytes > _LOCAL_BYTES:
        raise UnsupportedError(f"{layout.local_bytes} bytes of local memory are more than a thread can have")
    flow = flow_of(kernel)
    slots = Slots(kernel, layout)
    lowering = Lowering(kernel, slots, flow, arch)
    blocks = tuple(_block(kernel, flow, number, slots, lowering) for number in range(len(flow.starts)))
    blocks += (BasicBlock(end=Exit()),)  # for who comes to the end without a ret
    return Program(
        kernel,
        blocks,
        slots.count,
        slots.constants,
        slots.specials,
        layout.shared_bytes,
        layout.dynamic_offset,
        layout.local_bytes,
        lowering.grain,
        flow.by_warps,
    )


def _block(kernel: Kernel, flow: Flow, number: int, slots: Slots, lowering: Lowering) -> BasicBlock:
    block = BasicBlock()
    for index in flow.instructions(number):
        instruction = kernel.body[index]
        block.place = block.place or instruction.place
        name = instruction.words[0]
        _count(block, name)
        with understood(instruction):
            if ends_block(instruction) and name != "trap":
                block.end = _end(instruction, flow, slots)
            else:
                _add_step(block, instruction, number, slots, lowering)
    return block


def _add_step(block: BasicBlock, instruction: Instruction, number: int, slots: Slots, lowering: Lowering) -> None:
    step = lowering.step(instruction, number)
    if (member := lowering.member_slot(instruction)) is not None:
        block.member_slot = member
    if touched := lowering.touched_by(instruction):
        step = Watched(step, touched, moves=instruction.words[0] == "mov")
    guard = instruction.guard
    where = (slots.register(guard.register), guard.negated) if guard else None
    if is_gate(instruction):
        block.gate, block.guard = cast(Gate, step), where
    if where:
        step = Guarded(step, *where)
    block.steps.append(step)
    _count(block, step.family, instruction.words[0])


def _count(block: BasicBlock, family: str, instead_of: str = "") -> None:
    """Adds one to a family; what was counted under the opcode's name first is taken back."""
    names = {"bra": "control", "ret": "control", "exit": "control", "bar": "barrier", "barrier": "barrier"}
    if instead_of:
        block.families[family] = block.families.get(family, 0) + 1
    elif family in names:
        block.families[names[family]] = block.families.get(names[family], 0) + 1


def _end(instruction: Instruction, flow: Flow, slots: Slots) -> Branch | Exit | Barrier:
    if instruction.words[0] in ("bar", "barrier"):
        return barrier_of(instruction, slots)
    guard = instruction.guard
    slot = slots.register(guard.register) if guard else None
    negated = guard.negated if guard else False
    words = Words(instruction)
    if words.name == "bra":
        words.flag("uni")
        words.done()
        target = instruction.operands[0]
        if not isinstance(target, Symbol) or target.name not in flow.targets:
            raise unsupported(instruction)
        return Branch(flow.targets[target.name], slot, negated)
    words.flag("uni")
    words.done()
    return Exit(slot, negated)
