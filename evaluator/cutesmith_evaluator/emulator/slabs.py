"""Shared and local memory of a batch: one row of bytes per block, or per thread, with what holds a value and races."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.memory import UNITS, AccessFaultError
from cutesmith_evaluator.emulator.races import Tracker
from cutesmith_evaluator.emulator.reservations import Reservations

Array = np.ndarray[Any, np.dtype[Any]]


class Slab:
    """`rows` × `size` bytes; `base`: the address of a row's first byte. `grain`: the smallest access, in bytes."""

    def __init__(self, what: str, rows: int, size: int, base: int, grain: int, tracker: Tracker | None) -> None:
        self.what, self.base, self.size = what, base, size
        self._stride = -(-size // 16) * 16
        self._bytes = np.zeros(rows * self._stride, np.uint8)
        self._grain = grain
        pieces = rows * self._stride // grain
        self._written = np.zeros(pieces, bool)
        self.reservations = Reservations(pieces, base)
        self._tracker = tracker
        if tracker is not None:
            tracker.watch(pieces, base)

    def load(self, rows: Array, addresses: Array, unit: int, threads: Array, used: int | None = None) -> Array:
        """`rows`, `addresses`: of each access; `threads`: who makes it, by number in the batch."""
        places = self._places(rows, addresses, unit, "reads")
        pieces = self._pieces(places, unit, used)
        self.reservations.check(pieces, addresses, "reads")
        missing = ~self._written[pieces]
        if missing.any():
            self._uninitialised(missing, addresses, unit)
        if self._tracker is not None:
            self._tracker.note_reads(pieces, threads, addresses)
        return self._bytes.view(UNITS[unit])[places // unit]

    def store(self, rows: Array, addresses: Array, unit: int, threads: Array, items: Array) -> None:
        places = self._places(rows, addresses, unit, "writes")
        pieces = self._pieces(places, unit, None)
        self.reservations.check(pieces, addresses, "writes")
        memory = self._bytes.view(UNITS[unit])
        memory[places // unit] = items
        self._written[pieces] = True
        if self._tracker is not None:
            self._tracker.note_writes(pieces, threads, addresses)
            self._check_together(memory[places // unit], items, unit, addresses)

    def take(self, row: int, addresses: Array, position: int) -> tuple[Array, Array]:
        """For the asynchronous proxy: 16 bytes at each address of one block, as bytes, and the pieces they are made of.

        `position`: of the issuing thread among those that run.
        """
        places, pieces = self._chunks(row, addresses, position, "reads")
        missing = ~self._written[pieces]
        if missing.any():
            offset = int(addresses[int(np.flatnonzero(missing.any(axis=1))[0])]) - self.base
            words = f"reads 16 bytes of {self.what} memory at offset {offset} that nothing has written"
            raise AccessFaultError("uninitialised-read", words, position, int(addresses[0]))
        return self._bytes.view(UNITS[16])[places // 16].view(np.uint8), pieces.reshape(-1)

    def place(self, row: int, addresses: Array, data: Array, position: int) -> Array:
        """The other direction; returns the pieces."""
        places, pieces = self._chunks(row, addresses, position, "writes")
        self._bytes.view(UNITS[16])[places // 16] = data.view(UNITS[16])
        self._written[pieces] = True
        return pieces.reshape(-1)

    def put(self, row: int, address: int, item: Array, position: int) -> Array:
        """One item of 4, 8 or 16 bytes; returns its pieces."""
        unit = item.itemsize
        try:
            places = self._places(np.array([row]), np.array([address]), unit, "writes")
        except AccessFaultError as error:
            error.thread = position
            raise
        pieces = self._pieces(places, unit, None).reshape(-1)
        self._bytes.view(UNITS[unit])[places // unit] = item
        self._written[pieces] = True
        return pieces

    def _chunks(self, row: int, addresses: Array, position: int, verb: str) -> tuple[Array, Array]:
        low, high = int(addresses.min()) - self.base, int(addresses.max()) - self.base
        if low < 0 or high > self.size - 16:
            words = f"{verb} {high + 16 - low} bytes at offset {low} of {self.size} bytes of {self.what} memory"
            raise AccessFaultError("out-of-bounds", words, position, int(addresses[0]))
        places = row * self._stride + addresses - self.base
        return places, self._pieces(places, 16, None)

    def update(self, rows: Array, addresses: Array, unit: int) -> tuple[Array, Array]:
        """For an atomic: the memory as items, and the index of each access. Atomics do not race with one another."""
        places = self._places(rows, addresses, unit, "updates")
        pieces = self._pieces(places, unit, None)
        self.reservations.check(pieces, addresses, "updates")
        missing = ~self._written[pieces]
        if missing.any():
            self._uninitialised(missing, addresses, unit)
        return self._bytes.view(UNITS[unit]), places // unit

    def reserve(self, rows: Array, addresses: Array, unit: int, threads: Array, items: Array) -> None:
        """For asynchronous copies of these items: nobody may touch the places until they are released."""
        places = self._places(rows, addresses, unit, "writes")
        pieces = self._pieces(places, unit, None)
        self.reservations.check(pieces, addresses, "writes")
        if self._tracker is not None:
            self._tracker.note_writes(pieces, threads, addresses)
        if not self.reservations.take(pieces, threads):
            together = np.empty(self._bytes.size // unit, items.dtype)
            together[places // unit] = items
            self._check_together(together[places // unit], items, unit, addresses)

    def release(self, rows: Array, addresses: Array, unit: int) -> None:
        self.reservations.free(self._pieces(self._places(rows, addresses, unit, "writes"), unit, None))

    def _places(self, rows: Array, addresses: Array, unit: int, verb: str) -> Array:
        offsets = addresses.astype(np.int64) - self.base
        outside = (offsets < 0) | (offsets > self.size - unit)
        if outside.any():
            thread = int(np.flatnonzero(outside)[0])
            words = f"{verb} {unit} bytes at offset {int(offsets[thread])} of {self.size} bytes of {self.what} memory"
            raise AccessFaultError("out-of-bounds", words, thread, int(addresses[thread]))
        crooked = offsets & (unit - 1)
        if crooked.any():
            thread = int(np.flatnonzero(crooked)[0])
            words = (
                f"accesses {unit} bytes of {self.what} memory at offset {int(offsets[thread])}, no multiple of {unit}"
            )
            raise AccessFaultError("misaligned-access", words, thread, int(addresses[thread]))
        return rows * self._stride + offsets

    def _pieces(self, places: Array, unit: int, used: int | None) -> Array:
        """(accesses, pieces of each that matter)"""
        grain = self._grain
        steps = [step for step in range(unit // grain) if used is None or (used >> step * grain) & ((1 << grain) - 1)]
        return (places // grain)[:, None] + np.array(steps, np.int64)

    def _uninitialised(self, missing: Array, addresses: Array, unit: int) -> None:
        thread = int(np.flatnonzero(missing.any(axis=1))[0])
        offset = int(addresses[thread]) - self.base
        words = f"reads {unit} bytes of {self.what} memory at offset {offset} that nothing has written"
        raise AccessFaultError("uninitialised-read", words, thread, int(addresses[thread]))

    def _check_together(self, stored: Array, items: Array, unit: int, addresses: Array) -> None:
        """Two threads of one access that write different values to one place."""
        differs = (stored.view(np.uint8) != items.view(np.uint8)).reshape(-1, unit).any(axis=1)
        if differs.any():
            thread = int(np.flatnonzero(differs)[0])
            offset = int(addresses[thread]) - self.base
            words = (
                f"writes {self.what} memory at offset {offset} together with another thread, which writes another value"
            )
            raise AccessFaultError("race", words, thread, int(addresses[thread]))
