"""atom and red: read, change, write, as if one thread did it after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import float32, halves
from cutesmith_evaluator.emulator.access import Location, slab_of
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.steps import Target, typed

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
Change = Callable[..., Array]  # (old, operands...) → new

CHANGES: dict[str, Change] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": lambda old, expected, new: np.where(old == expected, new, old),
    "inc": lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
}
FLOAT_CHANGES: dict[str, Change] = {
    "f32": float32.add,
    "f64": np.add,
    "f16": partial(halves.add, kind="f16"),
    "bf16": partial(halves.add, kind="bf16"),
    "f16x2": halves.paired(partial(halves.add, kind="f16")),
    "bf16x2": halves.paired(partial(halves.add, kind="bf16")),
}


@dataclass
class Update:
    """`result`: the register for the old value, None for red."""

    location: Location
    dtype: np.dtype
    change: Change
    sources: Sequence[int]
    result: Target | None
    place: Place | None
    family: str = "atomic"

    def run(self, batch: Batch) -> None:
        unit = self.dtype.itemsize
        active = batch.active()
        space, addresses = self.location.addresses(batch, active)
        numbers = batch.numbers[active]
        values = [batch.spread(typed(batch.values[slot], self.dtype))[active] for slot in self.sources]
        if space == "shared":
            slab, rows, addresses = slab_of(batch, space, numbers, addresses)
            memory, index = slab.update(rows, addresses, unit)
            old = self._in_turn(memory.view(self.dtype), index, values)
        else:
            batch.memory.load(addresses, unit)
            batch.counts.add_global("atomic", addresses, numbers, unit, self.place)
            old = self._global(batch, addresses, values)
        if self.result is not None:
            whole = np.zeros(batch.size, self.dtype)
            whole[active] = old
            batch.put(self.result, whole)

    def _global(self, batch: Batch, addresses: Array, values: list[Array]) -> Array:
        """One allocation after the other."""
        old = np.empty(addresses.size, self.dtype)
        left = np.ones(addresses.size, bool)
        while left.any():
            allocation = batch.memory.at(int(addresses[left][0]))
            assert allocation is not None  # the load before has checked
            mine = left & (addresses >= allocation.start) & (addresses < allocation.end)
            index = (addresses[mine] - np.uint64(allocation.base)) // np.uint64(self.dtype.itemsize)
            memory = allocation.view(self.dtype.itemsize).view(self.dtype)
            old[mine] = self._in_turn(memory, index.astype(np.int64), [value[mine] for value in values])
            if batch.memory.stores is not None:
                batch.memory.stores.note(allocation, index.astype(np.int64), self.dtype.itemsize)
            left &= ~mine
        return old

    def _in_turn(self, memory: Array, index: Array, values: list[Array]) -> Array:
        """The n-th updates of all places together, then the next ones: each sees what the one before it left."""
        old = np.empty(index.size, self.dtype)
        for turn in _turns(index):
            places = index[turn]
            old[turn] = memory[places]
            memory[places] = self.change(old[turn], *(value[turn] for value in values))
        return old


@dataclass
class SeveralUpdates:
    """red of several neighbours: each is an atomic of its own."""

    updates: Sequence[Update]
    place: Place | None
    family: str = "atomic"

    def run(self, batch: Batch) -> None:
        for update in self.updates:
            update.run(batch)


def _turns(index: Array) -> list[Array]:
    """Positions in rounds, so that no place occurs twice in a round, in order of position."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.arange(index.size) - np.repeat(starts, np.diff(np.r_[starts, index.size]))
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.flatnonzero(np.r_[True, np.diff(rank[by_rank]) > 0, True])
    return [order[by_rank[begin:end]] for begin, end in pairwise(bounds)]
