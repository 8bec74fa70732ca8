"""Barriers in shared memory: how many arrivals and bytes each still wants, and which phase it is in."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.memory import AccessFaultError
from cutesmith_evaluator.emulator.order import Agent, Order

Array = np.ndarray[Any, np.dtype[Any]]

_BYTES = 8
_MOST_BYTES = (1 << 20) - 1  # of a phase's transactions


class Mbarriers:
    """One possible barrier for every 8 bytes of each block's shared memory.

    `rows`: numbers of blocks in the batch; `addresses`: in their shared memory. Phases are counted from 0.
    """

    def __init__(self, blocks: int, size: int, base: int, order: Order) -> None:
        self._base, self._places = base, -(-size // _BYTES)
        self._order = order
        number = blocks * self._places
        self._live = np.zeros(number, bool)
        self._made = np.zeros(number, np.int64)  # Order's stamp of the initialisation
        self._count, self._pending, self._bytes, self._phase, self._meeting = np.zeros((5, number), np.int64)

    def init(self, rows: Array, addresses: Array, warps: Array, counts: Array) -> None:
        index = self._index(rows, addresses)
        given = {*zip(rows.tolist(), index.tolist(), warps.tolist(), counts.tolist(), strict=True)}
        for row, place, warp, count in given:
            self._made[place] = self._order.stamp(warp)
            if not self._live[place]:
                self._meeting[place] = self._order.new_meeting(row)
            self._live[place] = True
            self._count[place] = self._pending[place] = count
            self._bytes[place] = 0
            # A new life goes on in a later phase of the same parity: what completed in the old one stays known.
            self._phase[place] += self._phase[place] & 1

    def invalidate(self, rows: Array, addresses: Array, warps: Array) -> None:
        self._live[self._living(rows, addresses, warps)] = False

    def arrive(
        self,
        rows: Array,
        addresses: Array,
        warps: Array,
        counts: Array,
        transactions: Array,
        *,
        drop: bool = False,
        relaxed: bool = False,
    ) -> Array:
        """One thread after the other. Returns the phase that each arrives in."""
        index = self._living(rows, addresses, warps)
        states = np.empty(index.size, np.int64)
        told: set[tuple[int, int, int]] = set()
        for position, (place, row, warp) in enumerate(zip(index.tolist(), rows.tolist(), warps.tolist(), strict=True)):
            states[position] = self._phase[place]
            self._expect(place, int(transactions[position]), position, addresses)
            key = (place, warp, int(self._phase[place]))
            if key not in told:
                told.add(key)
                self._order.arrive(row, int(self._meeting[place]), warp, relaxed=relaxed)
            self._count[place] -= drop
            self._pending[place] -= counts[position]
            if self._pending[place] < 0:
                words = (
                    f"arrives at the mbarrier at offset {self._offset(place)}, which wants {int(self._count[place])} "
                    "arrivals a phase and has all of them"
                )
                raise AccessFaultError("mbarrier-misuse", words, position, int(addresses[position]))
            self._advance(row, place)
        return states

    def expect(self, rows: Array, addresses: Array, warps: Array, transactions: Array) -> None:
        """`transactions`: bytes that the phase waits for in addition; negative ones have come."""
        for position, (row, place) in enumerate(
            zip(rows.tolist(), self._living(rows, addresses, warps).tolist(), strict=True)
        ):
            self._expect(place, int(transactions[position]), position, addresses)
            self._advance(row, place)

    def passed(self, rows: Array, addresses: Array, warps: Array, phases: Array, *, parity: bool) -> Array:
        """Whether the phase is complete that is named by its number, or by its parity."""
        current = self._phase[self._living(rows, addresses, warps)]
        return (current & 1) != (phases & 1) if parity else current != phases

    def learn(self, rows: Array, addresses: Array, warps: Array) -> None:
        """What the last complete phase made known, to those who have seen that it is complete."""
        index = self._index(rows, addresses)
        for place, row, warp in {*zip(index.tolist(), rows.tolist(), warps.tolist(), strict=True)}:
            self._order.learn(row, int(self._meeting[place]), warp)

    def loader(self, row: int, address: int, warp: int) -> Agent:
        """A bulk copy that completes in the barrier's present phase."""
        place = int(self._living(np.array([row]), np.array([address]), np.array([warp]))[0])
        return self._order.bulk_load(warp, int(self._meeting[place]), int(self._phase[place]) + 1)

    def state(self, row: int, address: int) -> str:
        """What the barrier waits for, in words."""
        place = int(self._index(np.array([row]), np.array([address]))[0])
        wanted, missing = int(self._count[place]), int(self._pending[place])
        words = f"{wanted - missing} of {wanted} arrivals have come"
        if left := int(self._bytes[place]):
            words += (
                f", {left} more bytes are expected" if left > 0 else f", {-left} bytes more came than were expected"
            )
        return f"the mbarrier at offset {self._offset(place)}, where in phase {int(self._phase[place])} {words}"

    def _expect(self, place: int, transactions: int, position: int, addresses: Array) -> None:
        self._bytes[place] += transactions
        if abs(int(self._bytes[place])) > _MOST_BYTES:
            words = f"expects {int(self._bytes[place])} bytes at an mbarrier, which counts to {_MOST_BYTES}"
            raise AccessFaultError("mbarrier-misuse", words, position, int(addresses[position]))

    def _advance(self, row: int, place: int) -> None:
        if self._pending[place] == 0 and self._bytes[place] == 0:
            self._phase[place] += 1
            self._pending[place] = self._count[place]
            self._order.meet(row, int(self._meeting[place]), int(self._phase[place]))

    def _living(self, rows: Array, addresses: Array, warps: Array) -> Array:
        index = self._index(rows, addresses)
        dead = ~self._live[index]
        if dead.any():
            position = int(np.flatnonzero(dead)[0])
            words = f"uses an mbarrier at offset {self._offset(int(index[position]))} that nothing has initialised"
            raise AccessFaultError("mbarrier-misuse", words, position, int(addresses[position]))
        early = self._order.unknown(warps, self._made[index])
        if early.any():
            position = int(np.flatnonzero(early)[0])
            words = (
                f"uses the mbarrier at offset {self._offset(int(index[position]))}, which another warp initialises "
                "with no fence and barrier in between"
            )
            raise AccessFaultError("race", words, position, int(addresses[position]))
        return index

    def _index(self, rows: Array, addresses: Array) -> Array:
        offsets = addresses.astype(np.int64) - self._base
        wrong = (offsets < 0) | (offsets >= self._places * _BYTES) | (offsets % _BYTES != 0)
        if wrong.any():
            position = int(np.flatnonzero(wrong)[0])
            words = f"uses an mbarrier at offset {int(offsets[position])} of shared memory, where none can be"
            kind = "misaligned-access" if offsets[position] % _BYTES else "out-of-bounds"
            raise AccessFaultError(kind, words, position, int(addresses[position]))
        return rows * self._places + offsets // _BYTES

    def _offset(self, place: int) -> int:
        return place % self._places * _BYTES
