"""Steps that load, store and update memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import Place, UnsupportedError
from cutesmith_evaluator.emulator.layout import LOCAL_WINDOW, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW
from cutesmith_evaluator.emulator.memory import UNITS, AccessFaultError
from cutesmith_evaluator.emulator.steps import Target, typed

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.slabs import Slab

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Location:
    """Where an access goes: `space`, the slot of the base address (32 or 64 bits), and what is added to it."""

    space: str
    slot: int
    offset: int

    def addresses(self, batch: Batch, active: Array | slice) -> tuple[str, Array]:
        """The space, and one address per active thread in it; generic ones are resolved."""
        base = batch.spread(batch.values[self.slot])[active]
        wide = base.view(np.uint32).astype(np.uint64) if base.dtype.itemsize == 4 else base.view(np.uint64)
        wide = wide + np.uint64(self.offset % (1 << 64))
        return (self.space, wide) if self.space != "generic" else _resolved(wide)


def _resolved(addresses: Array) -> tuple[str, Array]:
    """Generic addresses lie in a window of shared or of local memory, or are global."""
    low, high = int(addresses.min(initial=0)), int(addresses.max(initial=0))
    if high < SHARED_WINDOW:
        return "global", addresses
    if low >= PARAM_WINDOW:
        return "param", addresses - np.uint64(PARAM_WINDOW)
    if low >= LOCAL_WINDOW and high < PARAM_WINDOW:
        return "local", addresses - np.uint64(LOCAL_WINDOW)
    if low >= SHARED_WINDOW and high < LOCAL_WINDOW:
        return "shared", addresses - np.uint64(SHARED_WINDOW)
    raise UnsupportedError("an access whose generic addresses lie in several memories at once is not emulated yet")


def slab_of(batch: Batch, space: str, numbers: Array, addresses: Array) -> tuple[Slab, Array, Array]:
    """Shared or local memory; the row in it and the address there of each access."""
    if space != "shared":
        return batch.local, numbers, addresses
    return batch.shared, *shared_rows(batch, numbers, addresses)


def shared_rows(batch: Batch, numbers: Array, addresses: Array) -> tuple[Array, Array]:
    """The block whose shared memory is meant, by number in the batch, and the address there."""
    rows = batch.blocks[numbers]
    rank = addresses >> np.uint64(RANK_SHIFT)
    if not rank.any():
        return rows, addresses
    size = batch.shape.cluster_size
    if size == 1 and (rank != 1).any():  # no cluster: the memory itself says what is wrong
        return rows, addresses
    beyond = rank > size
    if beyond.any():
        position = int(np.flatnonzero(beyond)[0])
        words = f"accesses shared memory at 0x{int(addresses[position]):x}, in no block of its cluster"
        raise AccessFaultError("out-of-bounds", words, position, int(addresses[position]))
    rows = np.where(rank > 0, rows - rows % size + rank.astype(np.int64) - 1, rows)
    return rows, addresses & np.uint64((1 << RANK_SHIFT) - 1)


@dataclass
class Load:
    """`parts`: registers of one access, each `element` wide; `used`: bytes that matter, as bits."""

    location: Location
    element: np.dtype
    parts: Sequence[Target | None]
    used: int | None
    place: Place | None
    family: str = "load"

    def run(self, batch: Batch) -> None:
        unit = self.element.itemsize * len(self.parts)
        active = batch.active()
        space, addresses = self.location.addresses(batch, active)
        numbers = batch.numbers[active]
        items = self._items(batch, space, addresses, numbers, unit)
        columns = items.view(self.element).reshape(-1, len(self.parts)).T
        for target, column in zip(self.parts, columns, strict=True):
            if target is not None:
                batch.put(target, _widened(_whole(batch, active, column), target.dtype))

    def _items(self, batch: Batch, space: str, addresses: Array, numbers: Array, unit: int) -> Array:
        if space in ("global", "const"):
            items = batch.memory.load(addresses, unit, self.used)
            batch.counts.add_global("global load", addresses, numbers, unit, self.place)
            return items
        if space == "param":
            return _of_arguments(batch, addresses, unit)
        slab, rows, addresses = slab_of(batch, space, numbers, addresses)
        items = slab.load(rows, addresses, unit, numbers, self.used)
        if space == "shared":
            batch.counts.add_shared("shared load", addresses, numbers, unit, self.place)
        return items


def _of_arguments(batch: Batch, addresses: Array, unit: int) -> Array:
    beyond = addresses + np.uint64(unit) > np.uint64(len(batch.arguments))
    if beyond.any():
        position = int(np.flatnonzero(beyond)[0])
        words = f"reads {unit} bytes past the end of the kernel's {len(batch.arguments)} bytes of arguments"
        raise AccessFaultError("out-of-bounds", words, position, int(addresses[position]))
    data = np.frombuffer(batch.arguments, np.uint8)
    return data[addresses.astype(np.int64)[:, None] + np.arange(unit)].view(UNITS[unit])[:, 0]


def _whole(batch: Batch, active: Array | slice, column: Array) -> Array:
    """A value per thread, from those of the active ones."""
    if isinstance(active, slice):
        return np.ascontiguousarray(column)
    whole = np.zeros(batch.size, column.dtype)
    whole[active] = column
    return whole


def _widened(values: Array, dtype: np.dtype) -> Array:
    if values.dtype.itemsize == dtype.itemsize:
        return values
    return values.astype(np.dtype(f"{'i' if values.dtype.kind == 'i' else 'u'}{dtype.itemsize}"))


@dataclass
class LoadParameter:
    """ld.param: the same bytes for all threads."""

    offset: int
    element: np.dtype
    parts: Sequence[Target | None]
    place: Place | None
    family: str = "parameter"

    def run(self, batch: Batch) -> None:
        values = np.frombuffer(batch.arguments, self.element, len(self.parts), self.offset)
        for target, value in zip(self.parts, values, strict=True):
            if target is not None:
                kind = "i" if value.dtype.kind == "i" else "u"
                batch.put(target, value.astype(np.dtype(f"{kind}{target.dtype.itemsize}")))


@dataclass
class Store:
    """`sources`: slots of the values of one access, each `element` wide."""

    location: Location
    element: np.dtype
    sources: Sequence[int]
    place: Place | None
    family: str = "store"

    def run(self, batch: Batch) -> None:
        unit = self.element.itemsize * len(self.sources)
        active = batch.active()
        space, addresses = self.location.addresses(batch, active)
        numbers = batch.numbers[active]
        items = self._items(batch, active, addresses.size)
        if space == "global":
            batch.memory.store(addresses, unit, items)
            batch.counts.add_global("global store", addresses, numbers, unit, self.place)
            return
        slab, rows, addresses = slab_of(batch, space, numbers, addresses)
        slab.store(rows, addresses, unit, numbers, items)
        if space == "shared":
            batch.counts.add_shared("shared store", addresses, numbers, unit, self.place)

    def _items(self, batch: Batch, active: Array | slice, count: int) -> Array:
        """The values of an access side by side, as one item per active thread."""
        together = np.empty((count, len(self.sources)), self.element)
        for place, slot in enumerate(self.sources):
            value = typed(batch.values[slot], self.element)
            together[:, place] = value if np.ndim(value) == 0 else value[active]
        return together.view(UNITS[together.itemsize * len(self.sources)])[:, 0]
