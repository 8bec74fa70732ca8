"""%clock and %globaltimer: what stands for time is how many thread-level instructions the launch has done so far.

So they grow, are the same in every run, and say nothing about a GPU's speed. All reads in one straight piece of code
give the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.steps import Target

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

# name → how far the count is shifted: the registers that hold its upper half
REGISTERS = {
    "%clock": 0,
    "%clock_hi": 32,
    "%clock64": 0,
    "%globaltimer": 0,
    "%globaltimer_lo": 0,
    "%globaltimer_hi": 32,
}


@dataclass
class ReadClock:
    shift: int
    target: Target
    place: Place | None
    family: str = "move"

    def run(self, batch: Batch) -> None:
        bits = 8 * self.target.dtype.itemsize
        ticks = batch.counts.thread_instructions >> self.shift
        batch.put(self.target, self.target.dtype.type(ticks % (1 << bits)))
