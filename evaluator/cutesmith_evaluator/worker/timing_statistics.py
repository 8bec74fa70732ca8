"""Samples taken in turns, and what they are worth. Knows nothing of devices.

Arms take turns in random order within a round, so whatever drifts meets all of them alike. Two arms are compared by
the ratios of their samples of the same rounds: their midmean (the mean of the middle half), with an interval from
rounds drawn again with replacement.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from cutesmith_evaluator.types import Arm, ArmName, Conditions, Ratio

ARM_NAMES: tuple[ArmName, ...] = get_args(ArmName)
LEAST_NOISE = 0.005  # two copies of one kernel, at other addresses, may differ by as much

_Z = 1.96  # 95 %
_TAIL = 0.005  # on either side of a ratio's interval
_DRAWS = 1000
_LEAST_ROUNDS, _SETTLING_ROUNDS = 10, 30  # when time is up, and before fewer are enough
_LOOK_LATER = 1.2  # times as many rounds, before the next look whether all is settled
_WINDOW = 6  # rounds, of two windows that are compared to see whether the device is steady
_STEADY = 0.01

Samples = Mapping[str, Sequence[float]]
Samplers = Mapping[str, Callable[[], float]]
Array = np.ndarray[Any, np.dtype[np.float64]]


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


def arm(name: ArmName, samples: Sequence[float], conditions: Conditions | None = None) -> Arm:
    return Arm(name, *median_interval(samples), len(samples), conditions)


def paired_ratio(name: ArmName, base: ArmName, samples: Samples, seed: int = 0) -> Ratio:
    """Of the samples of `name` over those of `base`, round by round."""
    logs = np.sort(np.log(np.asarray(samples[name], np.float64)) - np.log(np.asarray(samples[base], np.float64)))
    drawn = np.random.default_rng(seed).integers(len(logs), size=(_DRAWS, len(logs)), dtype=np.int32)
    drawn.sort(axis=1)  # the logs are in order, so these are too
    middle = float(_midmean(logs, np.arange(len(logs))[None])[0])
    low, high = np.quantile(_midmean(logs, drawn) - middle, (_TAIL, 1 - _TAIL)) * _of_few(len(logs))
    return Ratio(name, base, math.exp(middle), math.exp(middle + min(low, 0.0)), math.exp(middle + max(high, 0.0)))


def ratios_of(samples: Samples) -> tuple[Ratio, ...]:
    """Of every arm over the candidate, and of the control over eager."""
    others: list[ArmName] = [name for name in ARM_NAMES if name not in ("candidate", "control")]
    found = [paired_ratio(name, "candidate", samples) for name in others if {name, "candidate"} <= samples.keys()]
    has_control = "eager" in samples and "control" in samples
    return (*found, paired_ratio("control", "eager", samples)) if has_control else tuple(found)


def noise_of(arms: Mapping[str, Arm], ratios: Sequence[Ratio]) -> float:
    """The largest relative difference between eager and its duplicate that their ratio's interval allows.

    Without both of them: the widest relative interval of any arm.
    """
    control = next((ratio for ratio in ratios if ratio.arm == "control"), None)
    if control:
        return max(control.high - 1, 1 - control.low, LEAST_NOISE)
    widths = ((each.high_ms - each.low_ms) / each.median_ms for each in arms.values())
    return max((LEAST_NOISE, *widths)) if arms else 0.0


def settled(samples: Samples, precision: float) -> bool:
    """Whether the first arm's median, and the ratio of every other arm to it, is known to `precision` (a fraction)."""
    base, *others = samples.values()
    paired = ([one / its for one, its in zip(other, base, strict=True)] for other in others)
    return all(_is_narrow(values, precision) for values in (base, *paired))


def take_turns(
    samplers: Samplers,
    *,
    budget_s: float,
    precision: float,
    now: Callable[[], float],
    between: Callable[[str], None] = lambda name: None,
    seed: int = 0,
) -> dict[str, list[float]]:
    """Rounds of one sample each, in a new random order every round, until all is settled or time is up.

    `between` is called after each sample with the arm's name.
    """
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    shuffled, end, rounds, look = random.Random(seed), now() + budget_s, 0, _SETTLING_ROUNDS
    while rounds < _LEAST_ROUNDS or now() < end:
        _take_a_round(samplers, samples, shuffled, between)
        rounds += 1
        if rounds >= look:
            if settled(samples, precision):
                break
            look = rounds * _LOOK_LATER
    return samples


def warm_up(samplers: Samplers, *, budget_s: float, now: Callable[[], float], seed: int = 0) -> bool:
    """Rounds until the arms together are as fast as they were some rounds before. False: time was up first."""
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    shuffled, end = random.Random(seed), now() + budget_s
    while True:
        for _ in range(_WINDOW):
            _take_a_round(samplers, samples, shuffled, lambda name: None)
        if _is_steady(samples):
            return True
        if now() >= end:
            return False


def _take_a_round(
    samplers: Samplers, samples: Mapping[str, list[float]], shuffled: random.Random, between: Callable[[str], None]
) -> None:
    for name in shuffled.sample(list(samplers), len(samplers)):
        samples[name].append(samplers[name]())
        between(name)


def _is_steady(samples: Samples) -> bool:
    if min(map(len, samples.values())) < 2 * _WINDOW:
        return False
    medians = (
        (statistics.median(each[-_WINDOW:]), statistics.median(each[-2 * _WINDOW : -_WINDOW]))
        for each in samples.values()
    )
    return abs(statistics.fmean(math.log(last / before) for last, before in medians)) <= _STEADY


def _is_narrow(values: Sequence[float], precision: float) -> bool:
    median, low, high = median_interval(values)
    return max(median - low, high - median) <= precision * median


def _of_few(rounds: int) -> float:
    """How much wider an interval from few rounds has to be: Student's t over the normal quantile, nearly."""
    freedom = max(rounds - 1, 1)
    return math.sqrt(rounds / freedom) * (1 + 2 / freedom)


def _midmean(values: Array, rows: np.ndarray[Any, np.dtype[np.integer[Any]]]) -> Array:
    """The mean of the middle half of each row of places in `values`, both in order. Shape (rows, places) to (rows,)."""
    cut = rows.shape[1] // 4
    return values[rows[:, cut : rows.shape[1] - cut]].mean(axis=1)
