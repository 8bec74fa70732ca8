"""The time that validation on the emulated device may take: told as it passes, and at an end that nothing outruns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from cutesmith_evaluator.emulator.faults import OutOfTimeError
from cutesmith_evaluator.worker.methods import Progress

_TELL_S = 1.0


@dataclass
class Pace:
    """`begin_s`: CPU seconds after which no other check begins, so that a busy machine makes as many checks as others;
    `end_s`: seconds after which a running kernel is stopped. From now on."""

    progress: Progress
    begin_s: float
    end_s: float
    _label: str = ""
    _started: float = field(default_factory=time.monotonic)
    _spent: float = field(default_factory=time.process_time)
    _told: float = 0.0

    def check(self, label: str) -> None:
        """Tells that a check begins."""
        self._label = label
        self.progress(label)

    def enough(self) -> bool:
        return time.process_time() - self._spent > self.begin_s

    @property
    def passed(self) -> float:
        return time.monotonic() - self._started

    def between(self, kernel: str, done: float) -> None:
        """Called now and then while a kernel runs. Raises OutOfTimeError."""
        passed = self.passed
        if passed > self.end_s:
            raise OutOfTimeError(kernel, done)
        if passed > self._told + _TELL_S:
            self._told = passed
            self.progress(f"{self._label}: {done:.0%} of a launch emulated, {passed:.0f} s of up to {self.end_s:.0f} s")
