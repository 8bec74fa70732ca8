"""Threads that come to a barrier and do not wait there."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.order import Order

Array = np.ndarray[Any, np.dtype[Any]]
_WARP = 32


class Arrivals:
    """The threads that came to a barrier with bar.arrive and went on, until the barrier is complete."""

    def __init__(self, blocks: int, padded: int) -> None:
        self._blocks, self._padded = blocks, padded
        self._counts: dict[int, Array] = {}  # by the barrier's number: threads of each block
        self._meetings: dict[tuple[int, int], int] = {}  # of a block and a number, in the order of what happened
        self._phases: dict[tuple[int, int], int] = {}

    def counts(self, number: int) -> Array:
        return self._counts.get(number, np.zeros(self._blocks, np.int64))

    def come(self, order: Order, numbers: Array, mask: Array) -> None:
        """`numbers`: the barrier of each thread of the batch."""
        for number in np.unique(numbers[mask]):
            threads = np.flatnonzero(mask & (numbers == number))
            blocks = np.bincount(threads // self._padded, minlength=self._blocks)
            self._counts[int(number)] = self.counts(int(number)) + blocks
            for warp in np.unique(threads // _WARP):
                block = int(warp) * _WARP // self._padded
                order.arrive(block, self._meeting(order, block, int(number)), int(warp))

    def pass_on(self, order: Order, number: int, blocks: Array, threads: Array) -> None:
        """The barrier is complete in these blocks: those that waited know what those that came had done."""
        if number not in self._counts:
            return
        self._counts[number][blocks] = 0
        for block in blocks.tolist():
            if (block, number) in self._meetings:
                meeting, phase = self._meetings[block, number], self._phases[block, number] + 1
                self._phases[block, number] = phase
                order.meet(block, meeting, phase)
                for warp in np.unique(threads[threads // self._padded == block] // _WARP):
                    order.learn(block, meeting, int(warp))

    def _meeting(self, order: Order, block: int, number: int) -> int:
        if (block, number) not in self._meetings:
            self._meetings[block, number] = order.new_meeting(block)
            self._phases[block, number] = 0
        return self._meetings[block, number]
