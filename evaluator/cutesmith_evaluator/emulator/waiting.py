"""Threads that are held before an instruction until something has come to pass, and those that wait in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import FaultError
from cutesmith_evaluator.emulator.program import Barrier, BasicBlock

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
_ROUNDS = 50  # in which nothing happens and the same threads wait at the same places: they will for ever
_NAMED = 3  # other waiting groups that a deadlock names


class Held:
    """The threads before each gate of a batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._waiting: dict[int, Array] = {}  # by block
        self._tired = np.zeros(batch.size, bool)  # may pass once without what they wait for
        self._events = -1
        self._rounds: dict[bytes, int] = {}  # how often a state of waiting came back since anything happened

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def let_through(self, index: int, block: BasicBlock, mask: Array) -> Array:
        """Those of the mask that may go on; the others are held."""
        passing = mask & (self._passes(block, mask) | self._tired)
        self._tired &= ~passing
        late = mask & ~passing
        if late.any():
            waiting = self._waiting.get(index)
            self._waiting[index] = late if waiting is None else waiting | late
        return passing

    def released(self) -> dict[int, Array]:
        """Those whose gate is open by now, by block."""
        free = {}
        for index, mask in list(self._waiting.items()):
            passing = mask & self._passes(self._batch.program.blocks[index], mask)
            if passing.any():
                free[index] = passing
                self._take(index, passing)
        return free

    def given_up(self, parked: dict[tuple[int, int], Array]) -> dict[int, Array]:
        """Nobody else can go on: those who need not wait for ever go on; none, when that led nowhere before."""
        if self._batch.events != self._events:
            self._events = self._batch.events
            self._rounds.clear()
        state = b"".join(repr(key).encode() + np.packbits(mask).tobytes() for key, mask in self._all(parked))
        self._rounds[state] = self._rounds.get(state, 0) + 1
        if self._rounds[state] > _ROUNDS:
            return {}
        free = {index: mask for index, mask in self._waiting.items() if self._gate(index).timed}
        for index, mask in free.items():
            self._tired |= mask
            self._take(index, mask)
        return free

    def deadlock(self, parked: dict[tuple[int, int], Array]) -> FaultError:
        """Who waits where: one thread and what it waits for, and the others in short."""
        index, mask = next(iter(self._waiting.items()))
        thread = int(np.flatnonzero(mask)[0])
        gate = self._gate(index)
        self._batch.at(gate.place, np.arange(self._batch.size) == thread)
        words = f"{gate.waits_for(self._batch)}; nobody is left who could come: the kernel would hang"
        if others := [self._in_short(key, group) for key, group in self._all(parked) if key != (index, -1)]:
            words += f" ({'; '.join(others[:_NAMED])}{'; ...' if len(others) > _NAMED else ''})"
        return FaultError("deadlock", words, place=gate.place, culprit=self._batch.culprit(thread))

    def _in_short(self, key: tuple[int, int], mask: Array) -> str:
        index, end = key
        blocks = self._batch.program.blocks
        barrier = blocks[end].end if end >= 0 else None
        place = barrier.place if isinstance(barrier, Barrier) else blocks[index].place
        what = "a barrier" if barrier else "an mbarrier" if blocks[index].gate else "lanes of their warp"
        where = f" in line {place.line}" if place and place.line else ""
        return f"{int(np.count_nonzero(mask))} threads wait for {what}{where}"

    def _all(self, parked: dict[tuple[int, int], Array]) -> list[tuple[tuple[int, int], Array]]:
        return [*(((index, -1), mask) for index, mask in self._waiting.items()), *parked.items()]

    def _gate(self, index: int) -> Any:
        return self._batch.program.blocks[index].gate

    def _passes(self, block: BasicBlock, mask: Array) -> Array:
        gate = block.gate
        assert gate is not None
        asked = mask
        if block.guard is not None:
            slot, negated = block.guard
            holds = self._batch.spread(self._batch.values[slot])
            asked = mask & (~holds if negated else holds)
            if not asked.any():
                return mask
        self._batch.at(gate.place, asked)
        return gate.passes(self._batch)

    def _take(self, index: int, passing: Array) -> None:
        left = self._waiting[index] & ~passing
        if left.any():
            self._waiting[index] = left
        else:
            del self._waiting[index]
