"""The time that validation on the emulated device may take: told as it passes, and at an end that nothing outruns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from cutesmith_evaluator.emulator.faults import OutOfTimeError
from cutesmith_evaluator.worker.methods import Progress

_TELL_S = 1.0
_PATIENCE = 5.0  # times the processor's seconds, by the clock: a busy machine gives a process a fifth of a core


@dataclass
class Pace:
    """In CPU seconds from now on, so that a busy machine gets as far as others: `begin_s`: after which no other check
    begins; `end_s`: after which a running kernel is stopped, or after five times as many by the clock."""

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
        return self._used > self.begin_s

    @property
    def _used(self) -> float:
        return time.process_time() - self._spent

    def between(self, kernel: str, done: float) -> None:
        """Called now and then while a kernel runs. Raises OutOfTimeError."""
        passed, used = time.monotonic() - self._started, self._used
        if max(used, passed / _PATIENCE) > self.end_s:
            raise OutOfTimeError(kernel, done)
        if passed > self._told + _TELL_S:
            self._told = passed
            words = f"{self._label}: {done:.0%} of a launch emulated"
            self.progress(f"{words}, {used:.0f} s of up to {self.end_s:.0f} s of a processor's time")
