"""The device's clocks, power, temperature and what holds its clocks back, from NVIDIA's management library.

Needs nvidia-ml-py in the worker's interpreter; without it nothing is known.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cutesmith_evaluator.types import Conditions
from cutesmith_evaluator.worker.nvml import managed

THROTTLES = {  # bits of nvmlDeviceGetCurrentClocksEventReasons that mean less speed than the device could have
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


@dataclass(frozen=True)
class Reading:
    """Of one moment. None: the driver does not say."""

    sm_mhz: float | None
    memory_mhz: float | None
    watts: float | None
    celsius: float | None
    throttles: int | None  # the reasons' bits


Sensors = Callable[[], Reading]


def sensors(device: torch.device) -> Sensors | None:
    """What reads `device`; None without nvidia-ml-py, or where the driver does not know the device."""
    found = managed(device)
    if found is None:
        return None
    library, handle = found
    return lambda: _read(library, handle)


def conditions_of(readings: Sequence[Reading]) -> Conditions | None:
    """Of an arm's readings; None of none."""
    if not readings:
        return None
    seen = Counter(reason for reading in readings for reason in reasons(reading.throttles or 0))
    return Conditions(
        _median(reading.sm_mhz for reading in readings),
        _median(reading.memory_mhz for reading in readings),
        _median(reading.watts for reading in readings),
        _median(reading.celsius for reading in readings),
        tuple(reason for reason in THROTTLES.values() if 2 * seen[reason] >= len(readings)),
        len(readings),
    )


def reasons(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in THROTTLES.items() if bits & bit)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _read(nvml: Any, handle: Any) -> Reading:
    def asked(query: Callable[..., float], *arguments: int, unit: float = 1.0) -> float | None:
        try:
            return query(handle, *arguments) * unit
        except nvml.NVMLError:  # many devices know some of these only
            return None

    newer = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    bits = asked(newer or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    return Reading(
        asked(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        asked(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
        asked(nvml.nvmlDeviceGetPowerUsage, unit=1e-3),
        asked(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        None if bits is None else int(bits),
    )
