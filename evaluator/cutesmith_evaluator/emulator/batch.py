"""Many blocks at once, in lockstep: values of all threads, who is where, barriers, and who is to blame."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.arrivals import Arrivals
from cutesmith_evaluator.emulator.async_copies import AsyncCopies
from cutesmith_evaluator.emulator.barriers import deadlock, released
from cutesmith_evaluator.emulator.bulk_groups import BulkGroups
from cutesmith_evaluator.emulator.clusters import ClusterBarrier
from cutesmith_evaluator.emulator.counts import Counts
from cutesmith_evaluator.emulator.faults import Culprit, DependentError, EmulationError, FaultError, Place
from cutesmith_evaluator.emulator.grid import WARP, Shape, coordinates
from cutesmith_evaluator.emulator.layout import LOCAL_BASE, SHARED_BASE
from cutesmith_evaluator.emulator.left_out import note_guarded_off, note_left_out
from cutesmith_evaluator.emulator.mbarriers import Mbarriers
from cutesmith_evaluator.emulator.memory import AccessFaultError, GlobalMemory
from cutesmith_evaluator.emulator.order import Order
from cutesmith_evaluator.emulator.program import Barrier, BasicBlock, Branch, Exit, Program
from cutesmith_evaluator.emulator.races import Clock, Tracker
from cutesmith_evaluator.emulator.register_pool import RegisterPool
from cutesmith_evaluator.emulator.slabs import Slab
from cutesmith_evaluator.emulator.steps import Guarded, Target
from cutesmith_evaluator.emulator.waiting import Held
from cutesmith_evaluator.emulator.wgmma import WarpGroups

Array = np.ndarray[Any, np.dtype[Any]]


class Batch:
    """Runs one program on some blocks. `mask`: the threads that the running step is for; None: all."""

    def __init__(
        self,
        program: Program,
        shape: Shape,
        arguments: bytes,
        memory: GlobalMemory,
        dynamic_shared: int,
        counts: Counts,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        """`between` is called after each basic block, and may raise to end the launch."""
        self.program, self.shape, self.arguments, self.memory, self.counts = program, shape, arguments, memory, counts
        self._between = between
        self.size = shape.count * shape.padded
        self.numbers, self.blocks, self.threads = _numbering(shape.count, shape.padded)
        shared_bytes = max(program.shared_bytes, program.dynamic_offset + dynamic_shared if dynamic_shared else 0)
        self.order: Order | None = None
        self.clock: Tracker = Clock(shape.count, shape.padded)
        if program.by_warps:
            self.clock = self.order = order = Order(shape.count, shape.padded, shape.cluster_size)
            self.mbarriers = Mbarriers(shape.count, shared_bytes, SHARED_BASE, order)
            self.bulk_groups = BulkGroups(order)
            self.warp_groups = WarpGroups(self.size // WARP)
            self.cluster_barrier = ClusterBarrier(self.size, shape.cluster_size * shape.padded, order)
        self.shared = Slab("shared", shape.count, shared_bytes, SHARED_BASE, program.grain, self.clock)
        self.local = Slab("local", self.size, program.local_bytes, LOCAL_BASE, program.grain, None)
        self.async_copies = AsyncCopies(self.size)
        self.arrivals = Arrivals(shape.count, shape.padded)
        self.registers = RegisterPool.of(shape.count, shape.padded)
        self.alive = self.threads < shape.threads
        self.mask: Array | None = None
        self.values: list[Any] = [program.constants.get(slot) for slot in range(program.slots)]
        self._ready: dict[int, Array] = {0: self.alive.copy()}
        self._parked: dict[tuple[int, int], Array] = {}  # (block that goes on, block that ended in a barrier)
        self._held = Held(self)
        self.events = 0  # what others may wait for: stores, arrivals, ends
        self._step_place: Place | None = None

    def run(self) -> None:
        """Raises FaultError and UnsupportedError, placed in the kernel and the source."""
        if self.memory.stores is not None:
            self.memory.stores.place_now = lambda: self._step_place
        try:
            with np.errstate(all="ignore"):
                while self._ready or self._release():
                    index = min(self._ready)
                    self._run_block(index, self._ready.pop(index))
                    self._between()
        except EmulationError as error:
            raise self._placed(error) from None

    # What steps use

    def put(self, target: Target, value: Any) -> None:
        """Writes a register for the threads of the mask."""
        if target.merge and self.mask is not None:
            value = np.where(self.mask, value, self.values[target.slot].view(value.dtype))
        self.values[target.slot] = value

    def where(self, slot: int, negated: bool) -> Array | None:
        """The mask of the threads that run now and whose predicate holds; None: all threads."""
        predicate = self.values[slot]
        chosen = ~predicate if negated else predicate
        if np.ndim(chosen) == 0:
            return self.mask if chosen else np.zeros(self.size, bool)
        return chosen if self.mask is None else chosen & self.mask

    def active(self) -> Array | slice:
        """The numbers of the threads that run now."""
        return slice(None) if self.mask is None else np.flatnonzero(self.mask)

    def spread(self, value: Any) -> Array:
        """A value per thread."""
        return np.broadcast_to(value, (self.size,)) if np.ndim(value) == 0 else value

    def culprit(self, number: int) -> Culprit:
        """The thread of that number in the batch."""
        block, thread = divmod(number, self.shape.padded)
        in_grid = int(self.shape.block_numbers[block])
        return Culprit(coordinates(in_grid, self.shape.grid), coordinates(thread, self.shape.block))

    def at(self, place: Place | None, mask: Array) -> None:
        """What follows is done for these threads at this line."""
        self._step_place = place
        self.mask = None if mask.all() else mask

    def note_guarded_off(self, guarded: Guarded) -> None:
        note_guarded_off(self, guarded)

    # Who runs next

    def _run_block(self, index: int, mask: Array) -> None:
        block = self.program.blocks[index]
        self._step_place = block.place
        if block.member_slot is not None:
            mask = self._converged(index, block, mask)
            if not mask.any():
                return
        if block.gate is not None:
            mask = self._held.let_through(index, block, mask)
            if not mask.any():
                return
        active = int(np.count_nonzero(mask))
        self.mask = None if active == self.size else mask
        self.events += block.changes_something
        self.counts.add_block(block, active)
        for step in block.steps:
            self._step_place = step.place
            step.run(self)
        self._leave(index, block, mask)

    def _leave(self, index: int, block: BasicBlock, mask: Array) -> None:
        match block.end:
            case None:
                self._go(index + 1, mask)
            case Branch(target, None, _):
                self._go(target, mask)
            case Branch(target, slot, negated):
                taken = self._split(slot, negated, mask)
                self._note_left_out((index + 1, taken), (target, mask & ~taken))
                self._go(target, taken)
                self._go(index + 1, mask & ~taken)
            case Exit(slot, negated):
                leaving = mask if slot is None else self._split(slot, negated, mask)
                self._note_left_out((index + 1, leaving))
                self.alive &= ~leaving
                self.events += 1
                self._go(index + 1, mask & ~leaving)
            case Barrier() as barrier:
                coming = mask if barrier.guard is None else self._split(*barrier.guard, mask)
                self._go(index + 1, mask if not barrier.waits else mask & ~coming)
                self._come(index, barrier, coming)

    def _note_left_out(self, *sides: tuple[int, Array]) -> None:
        """Blocks with the threads that do not go there."""
        if self.memory.stores is not None:
            for index, mask in sides:
                note_left_out(self, index, mask)

    def _come(self, index: int, barrier: Barrier, mask: Array) -> None:
        """To a barrier, to wait there or to be counted."""
        if not mask.any():
            return
        if barrier.waits:
            self._park(index, mask)
            return
        assert self.order is not None  # a barrier with a count
        self.arrivals.come(self.order, self.spread(self.values[barrier.number].view(np.uint32)), mask)
        self.events += 1
        self._parked, free = released(self, self._parked)
        for following, leaving in free.items():
            self._go(following, leaving)

    def _split(self, slot: int | None, negated: bool, mask: Array) -> Array:
        assert slot is not None
        chosen = self.where(slot, negated)
        return mask if chosen is None else chosen

    def _go(self, index: int, mask: Array) -> None:
        if mask.any():
            waiting = self._ready.get(index)
            self._ready[index] = mask if waiting is None else waiting | mask

    def _converged(self, index: int, block: BasicBlock, mask: Array) -> Array:
        """The threads all of whose named lanes have arrived; the rest goes on waiting here."""
        assert block.member_slot is not None
        mask = mask | self._parked.pop((index, -1), np.zeros(1, bool))
        if np.array_equal(mask, self.alive):
            return mask
        lanes = np.uint32(1) << (self.numbers % WARP).astype(np.uint32)
        named = self.spread(self.values[block.member_slot].view(np.uint32))
        here = np.bitwise_or.reduce(np.where(mask, lanes, np.uint32(0)).reshape(-1, WARP), axis=1)
        alive = np.bitwise_or.reduce(np.where(self.alive, lanes, np.uint32(0)).reshape(-1, WARP), axis=1)
        missing = named & np.repeat(alive & ~here, WARP)
        late = mask & (missing != 0)
        if late.any():
            self._parked[index, -1] = late
        return mask & ~late

    def _park(self, index: int, mask: Array) -> None:
        key = (index + 1, index)
        waiting = self._parked.get(key)
        self._parked[key] = mask.copy() if waiting is None else waiting | mask

    def _release(self) -> bool:
        """Lets those go on whose barrier is complete. Nobody to let go while some wait: a deadlock."""
        free = self._held.released()
        if not free and self._parked:
            self._parked, free = released(self, self._parked)
        free = free or self._held.given_up(self._parked)
        if not free and self._held:
            raise self._held.deadlock(self._parked)
        if not free and self._parked:
            raise deadlock(self, self._parked)
        for index, mask in free.items():
            self._go(index, mask)
        return bool(free)

    def _placed(self, error: EmulationError) -> EmulationError:
        """The error with the kernel, the line and the thread filled in."""
        if isinstance(error, DependentError):  # it may name the kernel of an earlier launch
            return error
        error.kernel = self.program.kernel.name
        error.place = error.place or self._step_place
        if isinstance(error, AccessFaultError):
            numbers = self.numbers[self.active()]
            error.culprit = self.culprit(int(numbers[error.thread]))
        if isinstance(error, FaultError) and error.culprit is not None:
            error.message = f"{error.culprit} {error.message}"
            error.args = (error.message,)
        return error


@lru_cache(maxsize=8)
def _numbering(count: int, padded: int) -> tuple[Array, Array, Array]:
    """Of every thread: its number in the batch, its block's number there, its number in the block."""
    arrays = np.arange(count * padded), np.repeat(np.arange(count), padded), np.tile(np.arange(padded), count)
    for array in arrays:
        array.flags.writeable = False
    return arrays
