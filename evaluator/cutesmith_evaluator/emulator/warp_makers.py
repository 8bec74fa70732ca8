"""shfl, vote, activemask, bar.warp.sync, trap, and what lockstep execution has no need of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cutesmith_evaluator.emulator.kinds import BOOL, U32, Words, unsupported
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Negated
from cutesmith_evaluator.emulator.warps import VOTES, Elect, Nothing, Shuffle, Trap, Vote, WarpBarrier, ballot

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.lowering import Lowering

_NOTHING = ("nanosleep", "prefetch", "prefetchu", "griddepcontrol", "discard", "applypriority")


def _shuffle(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.one_of(("sync",))
    mode = words.one_of(("up", "down", "bfly", "idx"))
    words.kind(("b32",))
    words.done()
    results = lowering.targets(instruction.operands[0], instruction)
    value, lane, clamp = (lowering.slots.source(each, U32, instruction) for each in instruction.operands[1:4])
    within = results[1] if len(results) > 1 else None
    return Shuffle(mode, value, lane, clamp, results[0], within, instruction.place)


def _vote(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.one_of(("sync",))
    mode = words.one_of(tuple(VOTES))
    words.kind(("b32",) if mode == "ballot" else ("pred",))
    words.done()
    predicate = instruction.operands[1]
    target = lowering.target(instruction.operands[0], instruction)
    if target is None:
        raise unsupported(instruction)
    function = VOTES[mode]
    if isinstance(predicate, Negated):
        predicate, function = predicate.register, _of_complement(function)
    return Vote(function, lowering.slots.source(predicate, BOOL, instruction), target, instruction.place)


def _of_complement(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda predicate, running: function(~predicate, running)


def _activemask(lowering: Lowering, words: Words) -> Step:
    words.kind(("b32",))
    words.done()
    target = lowering.target(words.instruction.operands[0], words.instruction)
    if target is None:
        raise unsupported(words.instruction)
    return Vote(ballot, None, target, words.instruction.place)


def _elect(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.one_of(("sync",))
    words.done()
    leader, elected = lowering.targets(instruction.operands[0], instruction)
    members = lowering.slots.source(instruction.operands[1], U32, instruction)
    return Elect(members, leader, elected, instruction.place)


def _warp_barrier(lowering: Lowering, words: Words) -> Step:
    words.done()
    return WarpBarrier(words.instruction.place)


def _trap(lowering: Lowering, words: Words) -> Step:
    return Trap(words.instruction.place)


def _nothing(lowering: Lowering, words: Words) -> Step:
    return Nothing(words.instruction.place)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    "shfl": _shuffle,
    "vote": _vote,
    "activemask": _activemask,
    "bar.warp.sync": _warp_barrier,
    "trap": _trap,
    "elect": _elect,
    **dict.fromkeys(_NOTHING, _nothing),
}
