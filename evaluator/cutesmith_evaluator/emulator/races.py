"""Who touched each piece of shared memory since the last barrier: what is needed to see a missing one.

A stamp is one integer: barriers passed by the block, barriers passed by the warp, thread. Stamps of one piece conflict
when the block's count is the same, the threads differ, and no barrier of their common warp lies between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_THREAD = np.int64(0xFFFF)  # a thread; SEVERAL | 32 * warp: several of a warp; ANY: several warps
_SEVERAL, _ANY = np.int64(0x8000), np.int64(0xFFFF)
_BLOCK_SHIFT, _WARP_SHIFT = np.int64(32), np.int64(16)


class Clock:
    """The stamps of all threads of a batch."""

    def __init__(self, blocks: int, padded: int) -> None:
        threads = np.arange(padded, dtype=np.int64)
        self.stamps = np.tile(threads, blocks) + (np.int64(1) << _BLOCK_SHIFT)
        self._shape = (blocks, padded)

    def pass_block_barrier(self, blocks: Array | None) -> None:
        """`blocks`: numbers in the batch; None: all."""
        rows = self.stamps.reshape(self._shape)
        if blocks is None:
            self.stamps += np.int64(1) << _BLOCK_SHIFT
        else:
            rows[blocks] += np.int64(1) << _BLOCK_SHIFT

    def pass_warp_barrier(self, threads: Array) -> None:
        self.stamps[threads] += np.int64(1) << _WARP_SHIFT


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
