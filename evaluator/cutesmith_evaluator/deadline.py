"""Deadlines that a busy machine does not bring nearer."""

from __future__ import annotations

import time

from cutesmith_evaluator.processes import waited_s

WAITING_FOR_DEVICE = "waiting for the device"  # how the words of a worker that does so begin
_LONGEST = 10.0  # times the deadline, however busy the machine is
_MOST_WAITED_S = 65.0  # for a device: whatever the words of a process say, which a candidate could have written


class Deadline:
    """`seconds` from now in which a process runs or sleeps; while others have its processor, they do not pass, nor
    while it waits for a device that others have."""

    def __init__(self, seconds: float, pid: int, most_waited_s: float = _MOST_WAITED_S) -> None:
        self.seconds = seconds
        self._pid = pid
        self._started = self._looked = time.monotonic()
        self._waited = waited_s(pid)
        self._most_waited_s, self._for_device = most_waited_s, 0.0

    def look(self, doing: str) -> None:
        """Is told again and again what the process does now."""
        now = time.monotonic()
        if doing.startswith(WAITING_FOR_DEVICE):
            self._for_device = min(self._for_device + now - self._looked, self._most_waited_s)
        self._looked = now

    @property
    def has_passed(self) -> bool:
        elapsed = time.monotonic() - self._started - self._for_device
        if elapsed <= self.seconds:
            return False
        waited = waited_s(self._pid) - self._waited
        return elapsed - waited > self.seconds or elapsed > _LONGEST * self.seconds
