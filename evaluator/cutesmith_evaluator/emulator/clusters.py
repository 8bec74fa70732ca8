"""Thread block clusters: their barrier, and addresses of one block in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.layout import RANK_SHIFT, SHARED_WINDOW
from cutesmith_evaluator.emulator.memory import AccessFaultError
from cutesmith_evaluator.emulator.order import Order
from cutesmith_evaluator.emulator.steps import Target, typed, widened

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
_WARP = 32
_MEETING = 0  # Order's meeting point of the whole cluster


class ClusterBarrier:
    """Of every cluster of a batch. `threads`: of a whole cluster."""

    def __init__(self, size: int, threads: int, order: Order) -> None:
        self._shape = (size // threads, threads)
        self._order = order
        self._arrived = np.zeros(size, np.int64)  # phases that the thread has arrived in
        self._done = np.zeros(size // threads, np.int64)

    def arrive(self, batch: Batch, numbers: Array, *, relaxed: bool) -> None:
        self.settle(batch)
        twice = self._arrived[numbers] > self._done[numbers // self._shape[1]]
        if twice.any():
            words = "arrives at the cluster's barrier a second time without having waited"
            raise AccessFaultError("barrier-divergence", words, int(np.flatnonzero(twice)[0]), 0)
        self._arrived[numbers] += 1
        for warp in np.unique(numbers // _WARP).tolist():
            block = warp * _WARP // batch.shape.padded
            self._order.arrive(block, _MEETING, warp, relaxed=relaxed)
        self.settle(batch)

    def settle(self, batch: Batch) -> None:
        """Phases are complete to which all threads have come that have not ended."""
        arrived = self._arrived.reshape(self._shape)
        late = (arrived <= self._done[:, None]) & batch.alive.reshape(self._shape)
        begun = (arrived > self._done[:, None]).any(axis=1)
        for cluster in np.flatnonzero(begun & ~late.any(axis=1)).tolist():
            self._done[cluster] += 1
            self._order.meet(cluster * batch.shape.cluster_size, _MEETING, int(self._done[cluster]))

    def passed(self, numbers: Array) -> Array:
        return self._done[numbers // self._shape[1]] >= self._arrived[numbers]

    def missing(self, batch: Batch, number: int) -> int:
        """Threads of the cluster that have not arrived."""
        cluster = number // self._shape[1]
        arrived = self._arrived.reshape(self._shape)[cluster] > self._done[cluster]
        return int(np.count_nonzero(~arrived & batch.alive.reshape(self._shape)[cluster]))


@dataclass
class ClusterArrive:
    """barrier.cluster.arrive. `relaxed`: what was written before is not handed on, but for what a fence has covered."""

    relaxed: bool
    place: Place | None
    family: str = "barrier"

    def run(self, batch: Batch) -> None:
        batch.cluster_barrier.arrive(batch, batch.numbers[batch.active()], relaxed=self.relaxed)


@dataclass
class ClusterWait:
    """barrier.cluster.wait, a step and its gate."""

    place: Place | None
    family: str = "barrier"
    timed: bool = False

    def run(self, batch: Batch) -> None:
        for warp in np.unique(batch.numbers[batch.active()] // _WARP).tolist():
            batch.cluster_barrier._order.learn(warp * _WARP // batch.shape.padded, _MEETING, warp)

    def passes(self, batch: Batch) -> Array:
        batch.cluster_barrier.settle(batch)
        passed = np.ones(batch.size, bool)
        active = batch.active()
        passed[active] = batch.cluster_barrier.passed(batch.numbers[active])
        return passed

    def waits_for(self, batch: Batch) -> str:
        missing = batch.cluster_barrier.missing(batch, int(batch.numbers[batch.active()][0]))
        return f"waits at the cluster's barrier, to which {missing} threads have not come"


@dataclass
class MapAddress:
    """mapa: the same place in the shared memory of another block of the cluster."""

    address: int
    dtype: np.dtype
    rank: int
    result: Target
    place: Place | None
    family: str = "integer"

    def run(self, batch: Batch) -> None:
        address = batch.spread(typed(batch.values[self.address], self.dtype))
        rank = batch.spread(typed(batch.values[self.rank], np.dtype("u4")))
        beyond = (rank >= batch.shape.cluster_size)[batch.active()]
        if beyond.any():
            position = int(np.flatnonzero(beyond)[0])
            words = f"maps an address to block {int(rank[batch.active()][position])} of a cluster of "
            raise AccessFaultError("out-of-bounds", f"{words}{batch.shape.cluster_size} blocks", position, 0)
        kind = self.dtype.type
        low = address & kind((1 << RANK_SHIFT) - 1)
        window = address & kind(SHARED_WINDOW) if self.dtype.itemsize == 8 else kind(0)
        mapped = low | window | ((rank.astype(self.dtype) + kind(1)) << kind(RANK_SHIFT))
        batch.put(self.result, widened(mapped, self.result.dtype))


@dataclass
class RankOf:
    """getctarank: the block of the cluster that an address of shared memory lies in."""

    address: int
    dtype: np.dtype
    result: Target
    place: Place | None
    family: str = "integer"

    def run(self, batch: Batch) -> None:
        address = batch.spread(typed(batch.values[self.address], self.dtype)).astype(np.int64)
        rank = (address >> RANK_SHIFT) & 0xFF
        own = batch.blocks % batch.shape.cluster_size
        batch.put(self.result, widened(np.where(rank > 0, rank - 1, own).astype(np.uint32), self.result.dtype))
