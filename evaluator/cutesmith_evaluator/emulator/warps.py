"""Steps in which the lanes of a warp exchange values: shfl, vote, activemask, bar.warp.sync."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.memory import AccessFaultError
from cutesmith_evaluator.emulator.steps import Target

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
WARP = 32
_LANES = np.arange(WARP, dtype=np.int64)


@dataclass
class Shuffle:
    """shfl.sync: each lane takes the value of another one, where that lies in its segment; else its own."""

    mode: str
    value: int
    lane: int
    clamp: int
    result: Target | None
    within: Target | None  # the predicate: the other lane lies in the segment
    place: Place | None
    family: str = "shuffle"

    def run(self, batch: Batch) -> None:
        source, inside = _sources(self.mode, _by_warp(batch, self.lane), _by_warp(batch, self.clamp))
        self._check_sources(batch, source)
        if self.result is not None:
            values = batch.spread(batch.values[self.value]).reshape(-1, WARP)
            taken = values[:, source[0]] if len(source) == 1 else np.take_along_axis(values, source, axis=1)
            batch.put(self.result, np.ascontiguousarray(taken).reshape(-1))
        if self.within is not None:
            batch.put(
                self.within, np.ascontiguousarray(np.broadcast_to(inside, (batch.size // WARP, WARP))).reshape(-1)
            )

    def _check_sources(self, batch: Batch, source: Array) -> None:
        if batch.mask is None:
            return
        running = batch.mask.reshape(-1, WARP)
        asked = running[:, source[0]] if len(source) == 1 else np.take_along_axis(running, source, axis=1)
        wrong = (running & ~asked).reshape(-1)
        if wrong.any():
            number = int(np.flatnonzero(wrong)[0])
            other = int(source[number // WARP if len(source) > 1 else 0, number % WARP])
            words = f"takes the value of lane {other} in shfl.sync, which does not take part"
            raise AccessFaultError("inactive-lane", words, int(np.searchsorted(np.flatnonzero(batch.mask), number)), 0)


def _by_warp(batch: Batch, slot: int) -> Array:
    """(warps, 32) values, (1, 1) where they are one."""
    value = batch.values[slot].view(np.uint32).astype(np.int64)
    return value.reshape(1, 1) if np.ndim(value) == 0 else value.reshape(-1, WARP)


def _sources(mode: str, by: Array, clamp: Array) -> tuple[Array, Array]:
    """The lane that each lane reads, and whether it lies in the segment."""
    by, limit, segment = by & 31, clamp & 31, (clamp >> 8) & 31
    first = _LANES & segment
    last = first | (limit & ~segment & 31)
    match mode:
        case "up":
            other = _LANES - by
            inside = other >= last
        case "down":
            other = _LANES + by
            inside = other <= last
        case "bfly":
            other = _LANES ^ by
            inside = other <= last
        case _:
            other = first | (by & ~segment)
            inside = other <= last
    inside = inside & (other >= 0) & (other < WARP)
    return np.where(inside, other, _LANES), inside


@dataclass
class Vote:
    """vote.sync and activemask: `function` of (warps, 32) predicates that do not count outside the mask."""

    function: Callable[[Array, Array], Any]  # (predicate, running) → (warps,) or (warps, 32)
    predicate: int | None
    result: Target
    place: Place | None
    family: str = "vote"

    def run(self, batch: Batch) -> None:
        running = batch.alive if batch.mask is None else batch.mask
        predicate = np.ones(batch.size, bool) if self.predicate is None else batch.spread(batch.values[self.predicate])
        found = self.function(predicate.reshape(-1, WARP), running.reshape(-1, WARP))
        batch.put(self.result, np.repeat(found, WARP))


def ballot(predicate: Array, running: Array) -> Array:
    bits = np.uint32(1) << _LANES.astype(np.uint32)
    return np.bitwise_or.reduce(np.where(predicate & running, bits, np.uint32(0)), axis=1)


VOTES: dict[str, Callable[[Array, Array], Any]] = {
    "all": lambda predicate, running: (predicate | ~running).all(axis=1),
    "any": lambda predicate, running: (predicate & running).any(axis=1),
    "uni": lambda predicate, running: (predicate | ~running).all(axis=1) | ~(predicate & running).any(axis=1),
    "ballot": ballot,
}


@dataclass
class Elect:
    """elect.sync: one lane of those named is the leader, here the lowest."""

    members: int
    leader: Target | None
    elected: Target | None
    place: Place | None
    family: str = "vote"

    def run(self, batch: Batch) -> None:
        members = batch.spread(batch.values[self.members].view(np.uint32)).astype(np.int64)
        lowest = members & -members
        lanes = np.int64(1) << (batch.numbers % WARP)
        if self.elected is not None:
            batch.put(self.elected, lowest == lanes)
        if self.leader is not None:
            batch.put(self.leader, np.log2(np.maximum(lowest, 1)).astype(np.uint32))


@dataclass
class WarpBarrier:
    """bar.warp.sync: what the warp's lanes did to shared memory before it is in order now."""

    place: Place | None
    family: str = "barrier"

    def run(self, batch: Batch) -> None:
        running = batch.alive if batch.mask is None else batch.mask
        whole = np.repeat(running.reshape(-1, WARP).any(axis=1), WARP)
        batch.clock.pass_warp_barrier(np.flatnonzero(whole))


@dataclass
class Nothing:
    """An instruction that orders or hints: lockstep execution has no need of it."""

    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        return None


@dataclass
class Trap:
    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        raise AccessFaultError("trap", "reaches a trap instruction: an assertion of the kernel fails", 0, 0)
