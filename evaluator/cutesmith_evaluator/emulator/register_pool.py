"""The registers that warps of a block hand on by setmaxnreg.

A block has the registers that it was started with; a warp that asks for more waits until others have given enough
back. How many that was is the compiler's choice, at most what a multiprocessor has for the block's threads: a kernel
that asks for more waits for ever on any device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import FaultError
from cutesmith_evaluator.emulator.ptx import Place

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

_WARP = 32
_OF_MULTIPROCESSOR = 65536
_MOST, _STEP = 255, 8  # registers of a thread, and the steps in which setmaxnreg counts

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class RegisterPool:
    """`held`: registers per thread of each warp of a batch; 0 for a warp that has not said."""

    held: Array
    warps: int  # of a block

    @staticmethod
    def of(blocks: int, padded: int) -> RegisterPool:
        """`padded`: threads of a block, in whole warps."""
        return RegisterPool(np.zeros(blocks * padded // _WARP, int), padded // _WARP)

    @property
    def most(self) -> int:
        """Registers per thread that a block can be started with."""
        return min(_MOST, _OF_MULTIPROCESSOR // (self.warps * _WARP)) // _STEP * _STEP

    def asked(self, warps: Array, count: int) -> tuple[int, int] | None:
        """A block all of whose warps have said what they want, and the registers that these add up to, if it has not so
        many."""
        self.held[warps] = count
        for block in np.unique(warps // self.warps).tolist():
            held = self.held[block * self.warps : (block + 1) * self.warps]
            if held.all() and held.sum() > self.most * self.warps:
                return block, int(held.sum()) * _WARP
        return None


@dataclass
class SetRegisters:
    """setmaxnreg."""

    count: int
    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        numbers = batch.numbers[batch.active()]
        asked = batch.registers.asked(np.unique(numbers // _WARP), self.count)
        if asked is not None:
            most = batch.registers.most * batch.registers.warps * _WARP
            words = f"waits for registers: its block's warps ask for {asked[1]:,}, and it has {most:,} at most"
            raise FaultError("deadlock", words, place=self.place, culprit=batch.culprit(int(numbers[0])))
