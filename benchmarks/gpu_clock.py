"""Device time of several callables, measured against each other on the current CUDA device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

Call = Callable[[], object]
SLEEP_CYCLES = 2_000_000  # about 1 ms: longer than it takes the host to enqueue what is timed


def device_ms(arms: Mapping[str, Call], *, seconds: float = 1.0) -> dict[str, float]:
    """Median milliseconds of each arm: interleaved samples of single calls, L2 flushed, launch time kept out."""
    flush = torch.empty(2 * torch.cuda.get_device_properties().L2_cache_size, dtype=torch.int8, device="cuda")
    for call in arms.values():
        _sample(call, flush)
    samples: dict[str, list[float]] = {name: [] for name in arms}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, samples.values())) < 11:
        for name, call in arms.items():
            samples[name].append(_sample(call, flush))
    return {name: statistics.median(times) for name, times in samples.items()}


def host_us(arms: Mapping[str, Call], *, calls: int = 2000, rounds: int = 15) -> dict[str, float]:
    """Median microseconds a call costs where launching it is what takes the time: tiny inputs, calls back to back."""
    for call in arms.values():
        _back_to_back(call, calls)
    times: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name, call in arms.items():
            times[name].append(_back_to_back(call, calls))
    return {name: statistics.median(values) for name, values in times.items()}


def _sample(call: Call, flush: torch.Tensor) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.zero_()
    torch.cuda._sleep(SLEEP_CYCLES)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def _back_to_back(call: Call, calls: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls * 1e6
