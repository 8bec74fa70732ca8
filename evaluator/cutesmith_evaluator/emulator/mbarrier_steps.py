"""Steps on barriers in shared memory. A thread that asks for a phase is held until it is complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.access import Location, shared_rows
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.steps import Target, typed

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
_WARP = 32


def _at(batch: Batch, location: Location) -> tuple[Array, Array, Array]:
    """Of the threads that run: their numbers, the block and the address of the barrier that each names."""
    active = batch.active()
    _, addresses = location.addresses(batch, active)
    numbers = batch.numbers[active]
    rows, addresses = shared_rows(batch, numbers, addresses)
    return numbers, rows, addresses


def _values(batch: Batch, slot: int | None, default: int, count: int) -> Array:
    if slot is None:
        return np.full(count, default, np.int64)
    return batch.spread(typed(batch.values[slot], np.dtype("u4")))[batch.active()].astype(np.int64)


def _whole(batch: Batch, values: Array, dtype: np.dtype) -> Array:
    whole = np.zeros(batch.size, dtype)
    whole[batch.active()] = values
    return whole


@dataclass
class Initialise:
    """mbarrier.init, and mbarrier.inval where there is no count."""

    location: Location
    count: int | None
    place: Place | None
    family: str = "mbarrier"

    def run(self, batch: Batch) -> None:
        numbers, rows, addresses = _at(batch, self.location)
        warps = numbers // _WARP
        if self.count is None:
            batch.mbarriers.invalidate(rows, addresses, warps)
        else:
            batch.mbarriers.init(rows, addresses, warps, _values(batch, self.count, 1, rows.size))


@dataclass
class Arrive:
    """mbarrier.arrive and arrive_drop. `transactions`: the slot of the bytes expected before the arrival."""

    location: Location
    count: int | None
    transactions: int | None
    result: Target | None
    drop: bool
    relaxed: bool
    place: Place | None
    family: str = "mbarrier"

    def run(self, batch: Batch) -> None:
        numbers, rows, addresses = _at(batch, self.location)
        counts = _values(batch, self.count, 1, rows.size)
        transactions = _values(batch, self.transactions, 0, rows.size)
        states = batch.mbarriers.arrive(
            rows, addresses, numbers // _WARP, counts, transactions, drop=self.drop, relaxed=self.relaxed
        )
        if self.result is not None:
            batch.put(self.result, _whole(batch, states, np.dtype("u8")))


@dataclass
class ArriveWithCopies:
    """cp.async.mbarrier.arrive: an arrival when all cp.async of the thread are done, which they are here at once.

    `counted`: it is one of those that the barrier was initialised for; else it wants one more, and is it.
    """

    location: Location
    counted: bool
    place: Place | None
    family: str = "mbarrier"

    def run(self, batch: Batch) -> None:
        numbers, rows, addresses = _at(batch, self.location)
        batch.async_copies.wait(batch, numbers, -1)
        counts = np.full(rows.size, int(self.counted))
        batch.mbarriers.arrive(rows, addresses, numbers // _WARP, counts, np.zeros_like(counts))


@dataclass
class Expect:
    """mbarrier.expect_tx, and complete_tx with `sign` -1."""

    location: Location
    transactions: int
    sign: int
    place: Place | None
    family: str = "mbarrier"

    def run(self, batch: Batch) -> None:
        numbers, rows, addresses = _at(batch, self.location)
        transactions = self.sign * _values(batch, self.transactions, 0, rows.size)
        batch.mbarriers.expect(rows, addresses, numbers // _WARP, transactions)


@dataclass
class Test:
    """mbarrier.test_wait and try_wait. `phase`: the slot of a parity, or of the state that an arrival gave."""

    location: Location
    phase: int
    parity: bool
    result: Target
    place: Place | None
    family: str = "mbarrier wait"

    def run(self, batch: Batch) -> None:
        numbers, rows, addresses = _at(batch, self.location)
        passed = self._passed(batch, numbers, rows, addresses)
        batch.mbarriers.learn(rows[passed], addresses[passed], numbers[passed] // _WARP)
        batch.put(self.result, _whole(batch, passed, np.dtype(bool)))

    def _passed(self, batch: Batch, numbers: Array, rows: Array, addresses: Array) -> Array:
        dtype = np.dtype("u4" if self.parity else "u8")
        phases = batch.spread(typed(batch.values[self.phase], dtype))[batch.active()].astype(np.int64)
        return batch.mbarriers.passed(rows, addresses, numbers // _WARP, phases, parity=self.parity)

    # As a gate

    timed: bool = True

    def passes(self, batch: Batch) -> Array:
        passed = np.ones(batch.size, bool)
        passed[batch.active()] = self._passed(batch, *_at(batch, self.location))
        return passed

    def waits_for(self, batch: Batch) -> str:
        """What the first of the threads that run waits for."""
        _, rows, addresses = _at(batch, self.location)
        state = batch.mbarriers.state(int(rows[0]), int(addresses[0]))
        if not self.parity:
            return f"waits at {state}"
        parity = int(typed(batch.spread(batch.values[self.phase]), np.dtype("u4"))[batch.active()][0]) & 1
        return f"waits for a phase of parity {parity} at {state}"


@dataclass
class Fence:
    """fence and membar. `proxy`: between ordinary accesses and asynchronous ones."""

    proxy: bool
    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        if batch.order is not None:
            batch.order.fence(batch.numbers[batch.active()], proxy=self.proxy)
