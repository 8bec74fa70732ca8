"""Times work on a CUDA device.

Make a clock before any judged code is imported: it keeps the functions and events that such code might replace.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

Call = Callable[[], object]

_LEAD_MS = 1.0  # of sleep on the device before a sample, in which the host launches it
_LEAST_FLUSH = 128 << 20  # bytes
_LEAST_MS = 1e-6  # of a sample: ratios are taken, and a call may launch nothing


@dataclass(frozen=True)
class Batch:
    """Many calls in a row, timed by the device and by the host."""

    calls: int
    device_ms: float
    host_ms: float

    @property
    def disagreement(self) -> float:
        return abs(self.host_ms - self.device_ms) / self.host_ms


def _driver() -> ctypes.CDLL:
    """CUDA's driver. What it cannot do on an older device (no L2 set aside there) it answers with a code."""
    return ctypes.CDLL("libcuda.so.1")


class Clock:
    """Samples are in milliseconds, of the current stream of `device`."""

    def __init__(self, device: torch.device) -> None:
        self.now = time.perf_counter
        self._synchronize = torch.cuda.synchronize
        self._record = torch.cuda.Event.record
        self._elapsed = torch.cuda.Event.elapsed_time
        self._sleep = torch.cuda._sleep
        self._zero = torch.Tensor.zero_
        self._reset_persisting = _driver().cuCtxResetPersistingL2Cache
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        level2 = torch.cuda.get_device_properties(device).L2_cache_size
        self._flushed = torch.empty(max(2 * level2, _LEAST_FLUSH), dtype=torch.uint8, device=device)
        self._cycles_per_ms = self._calibrated()

    def sample(self, call: Call, lead_ms: float = _LEAD_MS) -> float:
        """One call with a cold L2. `lead_ms`: the device sleeps so long first, more than the host needs."""
        self._reset_persisting()  # lines that were set aside would survive what is written next
        self._zero(self._flushed)
        self._sleep(int(lead_ms * self._cycles_per_ms))
        self._record(self._start)
        result = call()
        self._record(self._end)
        self._synchronize()
        del result
        return max(self._elapsed(self._start, self._end), _LEAST_MS)

    def batch(self, call: Call, calls: int) -> Batch:
        """Calls back to back, caches warm."""
        self._synchronize()
        begin = self.now()
        self._record(self._start)
        for _ in range(calls):
            call()
        self._record(self._end)
        self._synchronize()
        return Batch(calls, self._elapsed(self._start, self._end), (self.now() - begin) * 1e3)

    def host_ms(self, call: Call, calls: int = 50) -> float:
        """The host's time for one call while the device sleeps, so that nothing waits for the device: best of three."""
        return min(self._enqueue_ms(call, calls) for _ in range(3))

    def lead_ms(self, call: Call) -> float:
        """How long a sample of this call has to sleep first."""
        return max(_LEAD_MS, 2 * self.host_ms(call, calls=3))

    def _enqueue_ms(self, call: Call, calls: int) -> float:
        self._synchronize()
        self._sleep(int(5 * _LEAD_MS * self._cycles_per_ms))
        begin = self.now()
        for _ in range(calls):
            call()
        passed = (self.now() - begin) * 1e3 / calls
        self._synchronize()
        return passed

    def _calibrated(self) -> float:
        """Cycles of `_sleep` in a millisecond."""
        cycles = 20_000_000
        for _ in range(2):  # the first run wakes the device
            self._record(self._start)
            self._sleep(cycles)
            self._record(self._end)
            self._synchronize()
        return cycles / self._elapsed(self._start, self._end)
