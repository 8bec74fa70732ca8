"""Samples taken in turns, and what their medians are worth. Knows nothing of devices."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from cutesmith_evaluator.types import Arm, ArmName

ARM_NAMES: tuple[ArmName, ...] = get_args(ArmName)

_Z = 1.96  # 95 %
_LEAST_ROUNDS = 10
_ROUNDS_BETWEEN_LOOKS = 10


def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """(median, low, high): order statistics that hold the true median with 95 % confidence; any distribution.

    Of fewer than 6 samples none do, so low and high are then the extremes.
    """
    ordered = sorted(samples)
    count = len(ordered)
    reach = _Z * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach))
    return statistics.median(ordered), ordered[low], ordered[high]


def arm(name: ArmName, samples: Sequence[float]) -> Arm:
    return Arm(name, *median_interval(samples), len(samples))


def settled(samples: Sequence[float], precision: float) -> bool:
    """Whether the median's interval reaches at most `precision` (a fraction) to either side."""
    median, low, high = median_interval(samples)
    return max(median - low, high - median) <= precision * median


def take_turns(
    samplers: Mapping[str, Callable[[], float]],
    *,
    budget_s: float,
    precision: float,
    now: Callable[[], float],
    seed: int = 0,
) -> dict[str, list[float]]:
    """Rounds of one sample each, in a new random order every round, until all medians are settled or time is up."""
    shuffled = random.Random(seed)
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    order = list(samplers)
    end = now() + budget_s
    rounds = 0
    while rounds < _LEAST_ROUNDS or now() < end:
        shuffled.shuffle(order)
        for name in order:
            samples[name].append(samplers[name]())
        rounds += 1
        look = rounds % _ROUNDS_BETWEEN_LOOKS == 0 and rounds > _LEAST_ROUNDS
        if look and all(settled(each, precision) for each in samples.values()):
            break
    return samples


def noise_of(arms: Mapping[str, Arm]) -> float:
    """The largest relative difference between eager and its duplicate that the two intervals allow.

    Without both of them: the widest relative interval of any arm.
    """
    eager, control = arms.get("eager"), arms.get("control")
    if eager and control:
        return max(control.high_ms - eager.low_ms, eager.high_ms - control.low_ms) / eager.median_ms
    return max(((each.high_ms - each.low_ms) / each.median_ms for each in arms.values()), default=0.0)
