"""Bulk copies between global and shared memory. They are done at once; `order` says who may see what they wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import boxes
from cutesmith_evaluator.emulator.access import Location, shared_rows
from cutesmith_evaluator.emulator.faults import Place, UnsupportedError
from cutesmith_evaluator.emulator.layout import PARAM_WINDOW
from cutesmith_evaluator.emulator.memory import AccessFaultError
from cutesmith_evaluator.emulator.steps import typed
from cutesmith_evaluator.emulator.tensormaps import BYTES, TensorMap, decoded

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
Combine = Callable[[Array, Array], Array]  # (what is there, what comes) → what is there then
_WARP = 32


@dataclass(frozen=True)
class Issuer:
    """A thread that issues a copy. `position`: among those that run."""

    batch: Batch
    position: int
    thread: int

    @property
    def warp(self) -> int:
        return self.thread // _WARP

    def value(self, slot: int, dtype: str) -> int:
        value = typed(self.batch.values[slot], np.dtype(dtype))
        return int(value if np.ndim(value) == 0 else value[self.thread])

    def address(self, location: Location) -> int:
        base = self.batch.values[location.slot]
        return (self.value(location.slot, f"u{base.dtype.itemsize}") + location.offset) % (1 << 64)

    def shared(self, location: Location) -> tuple[int, int]:
        """The block, by number in the batch, and the address in its shared memory."""
        address = np.array([self.address(location) & 0xFFFFFFFF], np.uint64)
        rows, addresses = shared_rows(self.batch, np.array([self.thread]), address)
        return int(rows[0]), int(addresses[0])

    def peers(self, mask: int) -> Iterator[int]:
        """The blocks of the cluster that a mask names."""
        size = self.batch.shape.cluster_size
        own = int(self.batch.blocks[self.thread])
        if mask >> size:
            words = f"sends a copy to the blocks 0x{mask:x} of a cluster of {size}"
            raise AccessFaultError("out-of-bounds", words, self.position, 0)
        yield from (own - own % size + rank for rank in range(size) if mask >> rank & 1)


def issuers(batch: Batch) -> Iterator[Issuer]:
    for position, thread in enumerate(batch.numbers[batch.active()].tolist()):
        yield Issuer(batch, position, thread)


@dataclass(frozen=True)
class Box:
    """A tensor map and the corner of a box in it."""

    map: Location
    corner: Sequence[int]

    def of(self, issuer: Issuer) -> tuple[TensorMap, list[int]]:
        address = issuer.address(self.map)
        if address >= PARAM_WINDOW:
            start = address - PARAM_WINDOW
            data = issuer.batch.arguments[start : start + BYTES]
        else:
            data = bytes(issuer.batch.memory.read_region(address, (BYTES,), (1,), 1, issuer.position))
        tensor = decoded(data)
        if len(tensor.extents) != len(self.corner):
            words = f"names a box by {len(self.corner)} coordinates in a tensor of {len(tensor.extents)} dimensions"
            raise AccessFaultError("tensor-map", words, issuer.position, address)
        return tensor, [issuer.value(slot, "i4") for slot in self.corner]


@dataclass(frozen=True)
class Run:
    """`size` bytes in a row in global memory."""

    start: Location
    size: int  # a slot

    def of(self, issuer: Issuer) -> tuple[int, int]:
        start, size = issuer.address(self.start), issuer.value(self.size, "u4")
        if start % boxes.CHUNK or size % boxes.CHUNK:
            words = f"copies {size} bytes at 0x{start:x}; both have to be multiples of {boxes.CHUNK}"
            raise AccessFaultError("misaligned-access", words, issuer.position, start)
        return start, size


@dataclass
class BulkLoad:
    """To shared memory, completing at an mbarrier. `multicast`: the slot of a mask of the cluster's blocks."""

    source: Box | Run | Location  # a Location: in the block's own shared memory, `size` bytes
    size: int | None
    target: Location
    mbarrier: Location
    multicast: int | None
    place: Place | None
    family: str = "bulk copy"

    def run(self, batch: Batch) -> None:
        for issuer in issuers(batch):
            row, address = issuer.shared(self.target)
            data, places = self._data(issuer, address)
            barrier_row, barrier = issuer.shared(self.mbarrier)
            if self.multicast is None:
                deliver(issuer, (row, barrier_row), places, barrier, data)
                continue
            for peer in issuer.peers(issuer.value(self.multicast, "u2")):
                deliver(issuer, (peer, peer), places, barrier, data)

    def _data(self, issuer: Issuer, address: int) -> tuple[Array, Array]:
        batch = issuer.batch
        match self.source:
            case Box():
                tensor, corner = self.source.of(issuer)
                data = boxes.load_box(batch.memory, tensor, corner, issuer.position)
                return data, boxes.places(tensor, address, issuer.position)
            case Run():
                start, size = self.source.of(issuer)
                data = batch.memory.read_region(start, (size,), (1,), 1, issuer.position)
            case Location():
                assert self.size is not None
                size = issuer.value(self.size, "u4")
                row, start = issuer.shared(self.source)
                data = fetch(issuer, row, in_a_row(issuer, start, size))
        return data, in_a_row(issuer, address, size)


def in_a_row(issuer: Issuer, address: int, size: int) -> Array:
    if address % boxes.CHUNK or size % boxes.CHUNK:
        words = f"copies {size} bytes at 0x{address:x} of shared memory; both have to be multiples of {boxes.CHUNK}"
        raise AccessFaultError("misaligned-access", words, issuer.position, address)
    return np.arange(address, address + size, boxes.CHUNK, dtype=np.int64)


def deliver(issuer: Issuer, rows: tuple[int, int], places: Array, barrier: int, data: Array) -> None:
    """Writes into the first block's shared memory, and tells the barrier in the second's."""
    batch = issuer.batch
    if not batch.alive[rows[0] * batch.shape.padded : (rows[0] + 1) * batch.shape.padded].any():
        words = "copies into the shared memory of a block that has ended"
        raise AccessFaultError("out-of-bounds", words, issuer.position, int(places[0]))
    agent = batch.mbarriers.loader(rows[1], barrier, issuer.warp)
    pieces = batch.shared.place(rows[0], places, data, issuer.position)
    assert batch.order is not None
    batch.order.async_write(pieces, agent, int(places[0]), issuer.position)
    complete(issuer, rows[1], barrier, data.size)


def complete(issuer: Issuer, row: int, barrier: int, size: int) -> None:
    """`size` bytes have come, for the barrier at that address of the block's shared memory."""
    where = np.array([row]), np.array([barrier]), np.array([issuer.warp])
    issuer.batch.mbarriers.expect(*where, np.array([-size]))


def fetch(issuer: Issuer, row: int, places: Array) -> Array:
    """Reads shared memory for a bulk store."""
    batch = issuer.batch
    data, pieces = batch.shared.take(row, places, issuer.position)
    assert batch.order is not None
    agent = batch.bulk_groups.issue(issuer.thread, issuer.warp)
    batch.order.async_read(pieces, agent, int(places[0]), issuer.position)
    return data


@dataclass
class BulkStore:
    """From shared to global memory. `combine`: with what is there, None to replace it; `kind`: of its elements."""

    target: Box | Run
    source: Location
    combine: dict[str, Combine] | None
    kind: str | None
    place: Place | None
    family: str = "bulk copy"

    def run(self, batch: Batch) -> None:
        for issuer in issuers(batch):
            row, address = issuer.shared(self.source)
            if isinstance(self.target, Box):
                tensor, corner = self.target.of(issuer)
                data = fetch(issuer, row, boxes.places(tensor, address, issuer.position))
                if self.combine is not None:
                    old = boxes.load_box(batch.memory, tensor, corner, issuer.position)
                    data = self._combined(tensor.kind, old, data)
                boxes.store_box(batch.memory, tensor, corner, data, issuer.position)
                continue
            start, size = self.target.of(issuer)
            data = fetch(issuer, row, in_a_row(issuer, address, size))
            if self.combine is not None:
                assert self.kind is not None
                data = self._combined(
                    self.kind, batch.memory.read_region(start, (size,), (1,), 1, issuer.position), data
                )
            batch.memory.write_region(start, (size,), (1,), data, issuer.position)

    def _combined(self, kind: str, old: Array, data: Array) -> Array:
        assert self.combine is not None
        if kind not in self.combine:
            raise UnsupportedError(f"a bulk reduction of elements {kind} is not emulated yet")
        return self.combine[kind](old, data)


@dataclass
class BulkCommit:
    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        for thread in batch.numbers[batch.active()].tolist():
            batch.bulk_groups.commit(thread)


@dataclass
class BulkWait:
    """`left`: groups that need not be done."""

    left: int
    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        for thread in batch.numbers[batch.active()].tolist():
            batch.bulk_groups.wait(thread, thread // _WARP, self.left)
