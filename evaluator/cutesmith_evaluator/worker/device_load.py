"""Other programs on the device: waited for, with a message and a bound, where they would disturb a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from cutesmith_evaluator.deadline import WAITING_FOR_DEVICE
from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.methods import Progress
from cutesmith_evaluator.worker.nvml import managed

WAIT_S = 60.0
_LOOK_S = 1.0
_LEAST_FREE = 0.05  # of the device's memory
_MOST_BUSY = 20  # per cent of the time

Load = Callable[[], str | None]


def await_device(
    device: torch.device, progress: Progress, wait_s: float = WAIT_S, load: Load | None = None
) -> Finding | None:
    """Waits while other programs hold the device's memory or processors; the finding where they do so to the end.

    `load`: what they do, in words; None: nothing that disturbs."""
    load = load or (lambda: others_load(device))
    started = time.monotonic()
    while (words := load()) is not None:
        passed = time.monotonic() - started
        if passed > wait_s:
            message = (
                f"The device was busy with another program for {wait_s:.0f} s ({words}): end it and check again, for "
                "times may be off and memory may not have sufficed."
            )
            return Finding("device-busy", message, severity="warning")
        progress(f"{WAITING_FOR_DEVICE}: {words} ({passed:.0f} s of up to {wait_s:.0f} s)")
        time.sleep(min(_LOOK_S, wait_s))
    return None


def others_load(device: torch.device) -> str | None:
    """What other programs take of a CUDA device, while this process has nothing running there."""
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(device)
    if free < _LEAST_FREE * total:
        return f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB are free"
    busy = _busy_with_others(device)
    return f"another program keeps it {busy} % busy" if busy is not None and busy > _MOST_BUSY else None


def _busy_with_others(device: torch.device) -> int | None:
    """Per cent of the time, where there are other processes; None: there are none, or nvidia-ml-py is not there."""
    found = managed(device)
    if found is None:
        return None
    library, handle = found
    try:
        if len(library.nvmlDeviceGetComputeRunningProcesses(handle)) < 2:
            return None
        return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)
    except library.NVMLError:
        return None
