"""Global memory: the allocations that exist, every access checked against them."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.faults import DependentError, FaultError
from cutesmith_evaluator.emulator.sampling import PartialLaunch
from cutesmith_evaluator.emulator.stores import Stores

# One access of a thread as one NumPy item; complex128 stands for 16 bytes, moved and never computed with.
UNITS = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8"), 16: np.dtype("c16")}
_LARGEST = 16

Array = np.ndarray[Any, np.dtype[Any]]


class AccessFaultError(FaultError):
    """A fault of the `thread`-th of the addresses given; the batch adds who that is."""

    def __init__(self, kind: str, message: str, thread: int, address: int) -> None:
        super().__init__(kind, message, address=address)
        self.thread = thread


class Allocation:
    """Bytes at a real address. `initialised`: False makes reads of bytes that no kernel wrote a fault."""

    def __init__(self, start: int, size: int, label: str, *, initialised: bool = True) -> None:
        self.start, self.end, self.label = start, start + size, label
        self.base = start - start % _LARGEST
        self.length = -(-(self.end - self.base) // _LARGEST) * _LARGEST  # from `base`, in whole accesses
        self._bytes = np.ctypeslib.as_array((ctypes.c_uint8 * self.length).from_address(self.base))
        self._views: dict[int, Array] = {}
        self._written: Array | None = None if initialised else np.zeros(self.length, np.uint8)
        self.writer: PartialLaunch | None = None  # that stored here last

    @property
    def is_partial(self) -> bool:
        """Whether blocks that would have stored here may have been left out."""
        return self.writer is not None and not self.writer.complete

    def view(self, unit: int) -> Array:
        """The memory as items of `unit` bytes from `base`; items outside [start, end) are never touched."""
        if unit not in self._views:
            self._views[unit] = self._bytes.view(UNITS[unit])
        return self._views[unit]

    def written(self, unit: int) -> Array | None:
        """1 in each byte that holds a value, in items of `unit` bytes; None where all do."""
        return None if self._written is None else self._written.view(UNITS[unit])

    def region(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int, *, written: bool = False
    ) -> Array | None:
        """Items of `size` bytes at regular distances, or their flags; None where all hold a value."""
        buffer = self._written if written else self._bytes
        if buffer is None:
            return None
        return np.ndarray(shape, f"u{size}", buffer, address - self.base, strides)  # pyright: ignore[reportArgumentType]

    def mark_initialised(self) -> None:
        self._written, self.writer = None, None

    def claim(self, launch: PartialLaunch) -> None:
        """For a launch that may leave blocks out, before it stores. Raises DependentError unless memory is fresh."""
        if self.writer is launch:
            return
        if self._written is None or self._written.any():
            raise DependentError(launch.kernel)
        self.writer = launch

    def holds_value(self) -> Array | None:
        """1 for each byte from `start` to `end` that holds a value; None where all do."""
        return None if self._written is None else self._written[self.start - self.base : self.end - self.base]

    def unwritten(self) -> int:
        """Bytes that hold no value."""
        inside = self.holds_value()
        return 0 if inside is None else int(inside.size - np.count_nonzero(inside))


_ALL_WRITTEN = {unit: np.full(unit, 1, np.uint8).view(dtype)[0] for unit, dtype in UNITS.items()}


class GlobalMemory:
    """Allocations by address. Loads and stores take one address per thread and the bytes of one access."""

    def __init__(self) -> None:
        self.launch: PartialLaunch | None = None  # that runs now, where it may leave blocks out
        self.stores: Stores | None = None  # where it is wanted which line stored what
        self._allocations: list[Allocation] = []
        self._starts: list[int] = []

    def add(self, allocation: Allocation) -> None:
        place = bisect_right(self._starts, allocation.start)
        self._allocations.insert(place, allocation)
        self._starts.insert(place, allocation.start)

    def remove(self, allocation: Allocation) -> None:
        place = self._allocations.index(allocation)
        del self._allocations[place], self._starts[place]

    def at(self, address: int) -> Allocation | None:
        """The allocation that holds the address."""
        place = bisect_right(self._starts, address) - 1
        return self._allocations[place] if place >= 0 and address < self._allocations[place].end else None

    def inside(self, addresses: Array) -> list[tuple[Allocation, Array]]:
        """Those of the addresses that lie in allocations, by allocation."""
        places = np.searchsorted(np.array(self._starts, np.uint64), addresses, side="right") - 1
        found = ((self._allocations[place], addresses[places == place]) for place in np.unique(places[places >= 0]))
        return [(each, some[some < np.uint64(each.end)]) for each, some in found]

    def load(self, addresses: Array, unit: int, used: int | None = None) -> Array:
        """One item of `unit` bytes per address. `used`: a bit for each byte that matters."""
        _check_alignment(addresses, unit)
        allocation = self._only(addresses, unit)
        if allocation is not None:
            return self._load_from(allocation, addresses, unit, used)
        result = np.empty(addresses.size, UNITS[unit])
        for found, chosen in self._parts(addresses, unit, "reads"):
            result[chosen] = self._load_from(found, addresses[chosen], unit, used, chosen)
        return result

    def store(self, addresses: Array, unit: int, items: Array) -> None:
        _check_alignment(addresses, unit)
        allocation = self._only(addresses, unit)
        parts = [(allocation, slice(None))] if allocation else self._parts(addresses, unit, "writes")
        for found, chosen in parts:
            if self.launch is not None:
                found.claim(self.launch)
            index = _index(found, addresses[chosen], unit)
            found.view(unit)[index] = items[chosen]
            if self.stores is not None:
                self.stores.note(found, index, unit)
            written = found.written(unit)
            if written is not None:
                written[index] = _ALL_WRITTEN[unit]

    def read_region(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int, position: int
    ) -> Array:
        """Items of `size` bytes at regular distances, outermost first. `position`: of the thread that asks for them."""
        allocation = self._holding(address, shape, strides, size, "reads", position)
        self._check_not_own(allocation)
        written = allocation.region(address, shape, strides, size, written=True)
        if written is not None and not (written == _ALL_WRITTEN[size]).all():
            self._check_none_left_out(allocation)
            words = f"reads {allocation.label} at 0x{address:x} and after, where nothing has written all of it"
            raise AccessFaultError("uninitialised-read", words, position, address)
        found = allocation.region(address, shape, strides, size)
        assert found is not None
        return found.copy()

    def write_region(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], items: Array, position: int
    ) -> None:
        size = items.itemsize
        allocation = self._holding(address, shape, strides, size, "writes", position)
        if self.launch is not None:
            allocation.claim(self.launch)
        found = allocation.region(address, shape, strides, size)
        assert found is not None
        found[...] = items
        if self.stores is not None:
            self.stores.note_region(allocation, address, shape, strides, size)
        written = allocation.region(address, shape, strides, size, written=True)
        if written is not None:
            written[...] = _ALL_WRITTEN[size]

    def _holding(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int, verb: str, position: int
    ) -> Allocation:
        last = address + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        allocation = self.at(address)
        if allocation is None or last + size > allocation.end:
            wrong = address if allocation is None else last
            raise self._out_of_bounds(wrong, size, verb, position)
        return allocation

    def _load_from(
        self, allocation: Allocation, addresses: Array, unit: int, used: int | None, threads: Array | None = None
    ) -> Array:
        index = _index(allocation, addresses, unit)
        self._check_not_own(allocation)
        written = allocation.written(unit)
        if written is not None:
            self._check_written(allocation, written[index], addresses, unit, used, threads)
        return allocation.view(unit)[index]

    def _check_written(
        self,
        allocation: Allocation,
        written: Array,
        addresses: Array,
        unit: int,
        used: int | None,
        threads: Array | None,
    ) -> None:
        flags = written.view(np.uint8).reshape(-1, unit)
        if used is not None:
            flags = flags[:, [place for place in range(unit) if used >> place & 1]]
        if flags.all():
            return
        self._check_none_left_out(allocation)
        place = int(np.flatnonzero(~flags.all(axis=1))[0])
        message = f"reads {unit} bytes of {allocation.label} at 0x{int(addresses[place]):x} that nothing has written"
        thread = int(threads[place]) if threads is not None else place
        raise AccessFaultError("uninitialised-read", message, thread, int(addresses[place]))

    def _check_not_own(self, allocation: Allocation) -> None:
        """A launch that may leave blocks out must not load what it stores."""
        if self.launch is not None and allocation.writer is self.launch:
            raise DependentError(self.launch.kernel)

    def _check_none_left_out(self, allocation: Allocation) -> None:
        """Where nothing has written: raises DependentError if a block that was left out would have done so."""
        if allocation.writer is not None and allocation.is_partial:
            raise DependentError(allocation.writer.kernel)
        if self.launch is not None:  # in the whole launch, another block may have come first
            raise DependentError(self.launch.kernel)

    def _only(self, addresses: Array, unit: int) -> Allocation | None:
        """The allocation that all the accesses lie in, where it is one."""
        low, high = int(addresses.min()), int(addresses.max())
        found = self.at(low)
        return found if found is not None and high + unit <= found.end else None

    def _parts(self, addresses: Array, unit: int, verb: str) -> list[tuple[Allocation, Array]]:
        """The accesses by allocation. Raises AccessFaultError for one that lies in none."""
        places = np.searchsorted(np.array(self._starts, np.uint64), addresses, side="right") - 1
        ends = np.array([each.end for each in self._allocations] or [0], np.uint64)
        outside = (places < 0) | (addresses + np.uint64(unit) > ends[places])
        if outside.any():
            thread = int(np.flatnonzero(outside)[0])
            raise self._out_of_bounds(int(addresses[thread]), unit, verb, thread)
        return [(self._allocations[place], np.flatnonzero(places == place)) for place in np.unique(places)]

    def _out_of_bounds(self, address: int, unit: int, verb: str, thread: int) -> AccessFaultError:
        message = f"{verb} {unit} bytes at 0x{address:x}, {self._where(address)}"
        return AccessFaultError("out-of-bounds", message, thread, address)

    def _where(self, address: int) -> str:
        place = bisect_right(self._starts, address) - 1
        before = self._allocations[place] if place >= 0 else None
        after = self._allocations[place + 1] if place + 1 < len(self._allocations) else None
        if before and (after is None or address - before.end <= after.start - address):
            past = address - before.end
            return f"{past} bytes past the end of {before.label}" if past >= 0 else f"over the end of {before.label}"
        return f"{after.start - address} bytes before {after.label}" if after else "where nothing is allocated"


def _index(allocation: Allocation, addresses: Array, unit: int) -> Array:
    return ((addresses - np.uint64(allocation.base)) >> np.uint64(unit.bit_length() - 1)).view(np.int64)


def _check_alignment(addresses: Array, unit: int) -> None:
    if int(np.bitwise_or.reduce(addresses)) & (unit - 1):
        thread = int(np.flatnonzero(addresses & np.uint64(unit - 1))[0])
        address = int(addresses[thread])
        message = f"accesses {unit} bytes at 0x{address:x}, which is no multiple of {unit}"
        raise AccessFaultError("misaligned-access", message, thread, address)
