"""Who touched each piece of shared memory since the last barrier: what is needed to see a missing one.

A stamp is one integer: barriers passed by the block, barriers passed by the warp, thread. Stamps of one piece conflict
when the block's count is the same, the threads differ, and no barrier of their common warp lies between them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from cutesmith_evaluator.emulator.memory import AccessFaultError

Array = np.ndarray[Any, np.dtype[Any]]

_THREAD = np.int64(0xFFFF)  # a thread; SEVERAL | 32 * warp: several of a warp; ANY: several warps
_SEVERAL, _ANY = np.int64(0x8000), np.int64(0xFFFF)
_BLOCK_SHIFT, _WARP_SHIFT = np.int64(32), np.int64(16)


class Tracker(Protocol):
    """Sees races on shared memory. Pieces are numbered through all blocks of a batch, threads too."""

    def watch(self, pieces: int, base: int) -> None:
        """Before the first access. `base`: the address of a block's first byte."""

    def note_reads(self, pieces: Array, threads: Array, addresses: Array) -> None:
        """`pieces`: (accesses, pieces of each). Raises AccessFaultError for a race."""

    def note_writes(self, pieces: Array, threads: Array, addresses: Array) -> None: ...

    def pass_block_barrier(self, blocks: Array) -> None:
        """`blocks`: numbers in the batch."""

    def pass_warp_barrier(self, threads: Array) -> None: ...


class Clock:
    """The stamps of all threads of a batch: enough where whole blocks and warps wait for each other."""

    def __init__(self, blocks: int, padded: int) -> None:
        threads = np.arange(padded, dtype=np.int64)
        self.stamps = np.tile(threads, blocks) + (np.int64(1) << _BLOCK_SHIFT)
        self._shape = (blocks, padded)
        self._base = 0
        self._writer = self._reader = np.zeros(0, np.int64)

    def watch(self, pieces: int, base: int) -> None:
        self._base = base
        self._writer, self._reader = np.zeros(pieces, np.int64), np.zeros(pieces, np.int64)

    def pass_block_barrier(self, blocks: Array) -> None:
        self.stamps.reshape(self._shape)[blocks] += np.int64(1) << _BLOCK_SHIFT

    def pass_warp_barrier(self, threads: Array) -> None:
        self.stamps[threads] += np.int64(1) << _WARP_SHIFT

    def note_reads(self, pieces: Array, threads: Array, addresses: Array) -> None:
        now = np.broadcast_to(self.stamps[threads][:, None], pieces.shape)
        writer = self._writer[pieces]
        self._raise_race(conflicts(writer, now), writer, addresses, "reads", "wrote")
        target = joined(self._reader[pieces], now)
        self._reader[pieces] = target
        while True:  # once more for pieces that several threads of this access read: one of them wrote last
            target = joined(self._reader[pieces], target)
            grown = target != self._reader[pieces]
            if not grown.any():
                return
            self._reader[pieces[grown]] = target[grown]

    def note_writes(self, pieces: Array, threads: Array, addresses: Array) -> None:
        now = np.broadcast_to(self.stamps[threads][:, None], pieces.shape)
        writer, reader = self._writer[pieces], self._reader[pieces]
        self._raise_race(conflicts(writer, now), writer, addresses, "writes", "wrote")
        self._raise_race(conflicts(reader, now), reader, addresses, "writes", "read")
        self._writer[pieces] = now

    def _raise_race(self, racing: Array, before: Array, addresses: Array, verb: str, earlier: str) -> None:
        if not racing.any():
            return
        access, piece = (int(place[0]) for place in np.nonzero(racing))
        offset = int(addresses[access]) - self._base
        words = (
            f"{verb} shared memory at offset {offset}, which {named(int(before[access, piece]))} {earlier} "
            "with no barrier in between"
        )
        raise AccessFaultError("race", words, access, int(addresses[access]))


def conflicts(before: Array, now: Array) -> Array:
    """Where an access stamped `before` and one stamped `now` may come in either order."""
    same_interval = (before >> _BLOCK_SHIFT) == (now >> _BLOCK_SHIFT)
    if not same_interval.any():
        return same_interval
    thread, other = before & _THREAD, now & _THREAD
    same_warp = (thread != _ANY) & (((thread & ~_SEVERAL) >> 5) == (other >> 5))
    ordered = same_warp & ((before >> _WARP_SHIFT) != (now >> _WARP_SHIFT))
    return same_interval & (thread != other) & ~ordered


def joined(before: Array, now: Array) -> Array:
    """The stamp of a piece that was read by `before` and is read by `now`."""
    outdated = (before >> _BLOCK_SHIFT) != (now >> _BLOCK_SHIFT)
    outdated |= (before >> _WARP_SHIFT != now >> _WARP_SHIFT) & _one_warp(before, now)
    return np.where(outdated | (before == now), now, _several(before, now))


def _several(one: Array, other: Array) -> Array:
    warp = other & np.int64(0x7FE0)
    any_warp = (other >> _BLOCK_SHIFT << _BLOCK_SHIFT) | _ANY
    return np.where(_one_warp(one, other), (other & ~_THREAD) | _SEVERAL | warp, any_warp)


def _one_warp(one: Array, other: Array) -> Array:
    thread = one & _THREAD
    return (thread != _ANY) & (((thread & ~_SEVERAL) >> 5) == ((other & _THREAD & ~_SEVERAL) >> 5))


def named(stamp: int) -> str:
    """Who a stamp stands for."""
    thread = stamp & int(_THREAD)
    if thread == int(_ANY):
        return "several threads"
    return f"threads of warp {(thread & 0x7FE0) >> 5}" if thread & int(_SEVERAL) else f"thread {thread}"


def thread_of(stamp: int) -> int:
    return stamp & int(_THREAD)
