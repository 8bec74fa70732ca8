"""Stores that threads do not come to: what they would have stored to, had the branch around them gone the other way.

Only where that takes arithmetic alone. It is looked at when an output turned out to be unwritten, in a second run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.access import Load, LoadParameter, Store
from cutesmith_evaluator.emulator.program import Branch, Exit, Program, Step
from cutesmith_evaluator.emulator.steps import Compute, Guarded, Target
from cutesmith_evaluator.emulator.wgmma import Watched

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
_BLOCKS = 16  # followed at most


def note_left_out(batch: Batch, first: int, mask: Array) -> None:
    """`mask`: threads that do not go to block `first`. Nothing of the batch is changed by it."""
    steps = _steps(batch.program, first)
    if not mask.any() or not any(_is_store(step) for step in steps):
        return
    values, outer = list(batch.values), batch.mask
    batch.mask = mask
    unknown: set[int] = set()
    try:
        for step in steps:
            _follow(batch, step, unknown)
    finally:
        batch.values[:], batch.mask = values, outer


def note_guarded_off(batch: Batch, guarded: Guarded) -> None:
    """For the threads whose predicate keeps them from a store of its own."""
    if not _is_store(guarded):
        return
    outer, batch.mask = batch.mask, batch.where(guarded.slot, not guarded.negated)
    try:
        _note(batch, _bare(guarded), set())
    finally:
        batch.mask = outer


def _steps(program: Program, first: int) -> list[Step]:
    return [step for block in _blocks(program, first) for step in program.blocks[block].steps]


def _blocks(program: Program, first: int) -> Iterator[int]:
    """The blocks from `first` on up to where threads wait, end, or go back; conditional jumps are not taken."""
    block = first
    for _ in range(_BLOCKS):
        if block >= len(program.blocks) or program.blocks[block].gate is not None:
            return
        yield block
        match program.blocks[block].end:
            case None | Exit(int(), _):
                block += 1
            case Branch(target, None, _) if target > block:
                block = target
            case Branch(_, int(), _):
                block += 1
            case _:
                return


def _bare(step: Step) -> Step:
    while isinstance(step, Guarded | Watched):
        step = step.step
    return step


def _is_store(step: Step) -> bool:
    inner = _bare(step)
    return isinstance(inner, Store) and inner.location.space in ("global", "generic")


def _follow(batch: Batch, step: Step, unknown: set[int]) -> None:
    """Runs arithmetic. What other steps would leave in registers is not known."""
    needed = {step.slot} if isinstance(step, Guarded) else set()
    match _bare(step):
        case Compute(sources=sources, targets=targets):
            needed |= {slot for slot, _ in sources}
            if needed & unknown or any(batch.values[slot] is None for slot in needed):
                unknown |= _slots(targets)
                return
            step.run(batch)
            unknown -= _slots(targets)
        case LoadParameter(parts=parts):
            step.run(batch)
            unknown -= _slots(parts)
        case Load(parts=parts):
            unknown |= _slots(parts)
        case Store() as store:
            _note(batch, store, unknown)
        case _:
            unknown |= set(range(len(batch.values)))


def _slots(targets: Any) -> set[int]:
    return {target.slot for target in targets if isinstance(target, Target)}


def _note(batch: Batch, step: Step, unknown: set[int]) -> None:
    """Where the threads of the mask would have stored."""
    stores = batch.memory.stores
    if not isinstance(step, Store) or step.place is None or stores is None or step.location.slot in unknown:
        return
    if batch.values[step.location.slot] is None or (batch.mask is not None and not batch.mask.any()):
        return
    space, addresses = step.location.addresses(batch, batch.active())
    if space == "global":
        unit = step.element.itemsize * len(step.sources)
        for allocation, some in batch.memory.inside(np.unique(addresses)):
            stores.leave_out(step.place, allocation, some, unit)
