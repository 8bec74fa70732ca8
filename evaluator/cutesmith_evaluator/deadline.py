"""Deadlines that a busy machine does not bring nearer."""

from __future__ import annotations

import time

from cutesmith_evaluator.processes import waited_s

_LONGEST = 10.0  # times the deadline, however busy the machine is


class Deadline:
    """`seconds` from now in which a process runs or sleeps; while others have its processor, they do not pass."""

    def __init__(self, seconds: float, pid: int) -> None:
        self.seconds = seconds
        self._pid = pid
        self._started = time.monotonic()
        self._waited = waited_s(pid)

    @property
    def has_passed(self) -> bool:
        elapsed = time.monotonic() - self._started
        if elapsed <= self.seconds:
            return False
        waited = waited_s(self._pid) - self._waited
        return elapsed - waited > self.seconds or elapsed > _LONGEST * self.seconds
