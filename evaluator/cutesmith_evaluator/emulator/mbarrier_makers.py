"""mbarrier, barrier.cluster, mapa, elect, fence and setmaxnreg as steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cutesmith_evaluator.emulator.access import Location
from cutesmith_evaluator.emulator.clusters import ClusterArrive, ClusterWait, MapAddress, RankOf
from cutesmith_evaluator.emulator.kinds import DTYPES, U32, U64, Words, unsupported
from cutesmith_evaluator.emulator.mbarrier_steps import Arrive, ArriveWithCopies, Expect, Fence, Initialise, Test
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Immediate, Operand
from cutesmith_evaluator.emulator.register_pool import SetRegisters

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.lowering import Lowering

_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "sc")
_SCOPES = ("cta", "cluster", "gpu", "sys")


def _barrier_at(lowering: Lowering, words: Words, operand: Operand) -> Location:
    """Takes the words for order, scope and memory; the last word is the barrier's type."""
    words.one_of(_SCOPES, "")
    space = words.space(("shared",))
    words.kind(("b64",))
    words.done()
    return lowering.location(operand, space, words.instruction)


def _initialise(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    address, *count = instruction.operands
    slot = lowering.slots.source(count[0], U32, instruction) if count else None
    return Initialise(_barrier_at(lowering, words, address), slot, instruction.place)


def _arrive(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    drop = words.name.startswith("mbarrier.arrive_drop")
    relaxed = words.one_of(_ORDERS, "release") == "relaxed"
    expects = words.flag("expect_tx")
    words.flag("noComplete")
    # Without a result the address comes first.
    result, address, *number = instruction.operands
    slot = lowering.slots.source(number[0], U32, instruction) if number else None
    location = _barrier_at(lowering, words, address)
    target = lowering.target(result, instruction)
    count, transactions = (None, slot) if expects else (slot, None)
    return Arrive(location, count, transactions, target, drop, relaxed, instruction.place)


def _arrive_with_copies(lowering: Lowering, words: Words) -> Step:
    counted = words.flag("noinc")
    location = _barrier_at(lowering, words, words.instruction.operands[0])
    return ArriveWithCopies(location, counted, words.instruction.place)


def _expect(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    sign = 1 if words.name.endswith("expect_tx") else -1
    words.one_of(_ORDERS, "")
    address, number = instruction.operands
    slot = lowering.slots.source(number, U32, instruction)
    return Expect(_barrier_at(lowering, words, address), slot, sign, instruction.place)


def _test(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    parity = words.flag("parity")
    words.one_of(_ORDERS, "")
    result, address, phase, *_ = instruction.operands  # what may follow is a hint of time
    location = _barrier_at(lowering, words, address)
    target = lowering.target(result, instruction)
    if target is None:
        raise unsupported(instruction)
    slot = lowering.slots.source(phase, U32 if parity else U64, instruction)
    return Test(location, slot, parity, target, instruction.place)


def _cluster_arrive(lowering: Lowering, words: Words) -> Step:
    relaxed = words.one_of(("relaxed", "release"), "release") == "relaxed"
    words.flag("aligned")
    words.done()
    return ClusterArrive(relaxed, words.instruction.place)


def _cluster_wait(lowering: Lowering, words: Words) -> Step:
    words.flag("acquire")
    words.flag("aligned")
    words.done()
    return ClusterWait(words.instruction.place)


def _map_address(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.space(("shared",))
    dtype = DTYPES[words.kind(("u32", "u64"))]
    words.done()
    result, address, rank = instruction.operands
    target = lowering.target(result, instruction)
    if target is None:
        raise unsupported(instruction)
    slots = lowering.slots.source(address, dtype, instruction), lowering.slots.source(rank, U32, instruction)
    return MapAddress(slots[0], dtype, slots[1], target, instruction.place)


def _rank_of(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.space(("shared",))
    dtype = DTYPES[words.kind(("u32", "u64"))]
    words.done()
    target = lowering.target(instruction.operands[0], instruction)
    if target is None:
        raise unsupported(instruction)
    return RankOf(lowering.slots.source(instruction.operands[1], dtype, instruction), dtype, target, instruction.place)


def _fence(lowering: Lowering, words: Words) -> Step:
    """Every fence is taken for a full one, but only those of the proxy reach the asynchronous one."""
    proxy = words.flag("proxy") and words.flag("async")
    return Fence(proxy, words.instruction.place)


def _registers(lowering: Lowering, words: Words) -> Step:
    words.one_of(("inc", "dec"))
    words.one_of(("sync",))
    words.flag("aligned")
    words.kind(("u32",))
    words.done()
    number = words.instruction.operands[0]
    if not isinstance(number, Immediate) or not 24 <= number.bits <= 256 or number.bits % 8:
        raise unsupported(words.instruction, "its count")
    return SetRegisters(number.bits, words.instruction.place)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    **dict.fromkeys(("mbarrier.init", "mbarrier.inval"), _initialise),
    **dict.fromkeys(("mbarrier.arrive", "mbarrier.arrive_drop"), _arrive),
    "cp.async.mbarrier.arrive": _arrive_with_copies,
    **dict.fromkeys(("mbarrier.expect_tx", "mbarrier.complete_tx"), _expect),
    **dict.fromkeys(("mbarrier.test_wait", "mbarrier.try_wait"), _test),
    "barrier.cluster.arrive": _cluster_arrive,
    "barrier.cluster.wait": _cluster_wait,
    "mapa": _map_address,
    "getctarank": _rank_of,
    **dict.fromkeys(("fence", "membar"), _fence),
    "setmaxnreg": _registers,
}
