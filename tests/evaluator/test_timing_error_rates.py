"""How often a verdict is wrong on machines that misbehave: no difference called one, and 3 % missed.

Each machine makes arms' samples as `take_turns` would take them, one after the other in random order: with noise, and
with what real devices do besides. The same bounds are held on a GPU by benchmarks/timing_verdicts.py.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from functools import partial

import pytest

from cutesmith_evaluator.speedup import speedup
from cutesmith_evaluator.types import Timing
from cutesmith_evaluator.worker.timing_statistics import arm, noise_of, ratios_of, take_turns

Weather = Callable[[random.Random], Callable[[int], float]]  # a machine, then its slowness at each sample
TRIALS = 200
ARM_S, SAMPLE_S = 0.6, 0.0015  # for each arm at most, a third of what a full timing takes, and for each sample


def steady(draw: random.Random) -> Callable[[int], float]:
    return lambda step: draw.gauss(1, 0.01)


def drifting(draw: random.Random) -> Callable[[int], float]:
    """Slower and slower, by a third in all."""
    return lambda step: draw.gauss(1, 0.01) * (1 + step / 1800)


def with_outliers(draw: random.Random) -> Callable[[int], float]:
    """One sample in ten takes up to four times as long."""
    return lambda step: draw.gauss(1, 0.01) * (draw.uniform(1, 4) if draw.random() < 0.1 else 1)


def with_two_clocks(draw: random.Random) -> Callable[[int], float]:
    """The clock changes by a tenth every ten samples or so, and stays there for a while."""
    state = [1.0]

    def at(step: int) -> float:
        if draw.random() < 0.1:
            state[0] = 1.1 if state[0] == 1.0 else 1.0
        return draw.gauss(state[0], 0.005)

    return at


def waving(draw: random.Random) -> Callable[[int], float]:
    """Slower and faster by a twentieth, over and over, at about the pace of the rounds."""
    phase, pace = draw.uniform(0, 6), draw.uniform(1.5, 4.5)
    return lambda step: draw.gauss(1, 0.005) * (1 + 0.05 * math.sin(phase + step * 2 * math.pi / pace))


def coarse(draw: random.Random) -> Callable[[int], float]:
    """A clock with steps of a hundredth."""
    return lambda step: round(draw.gauss(1, 0.01), 2)


MACHINES = [steady, drifting, with_outliers, with_two_clocks, waving, coarse]


def claimed(weather: Weather, eager: float, seed: int) -> float | None:
    """What is claimed of a candidate that takes 1 beside an eager that takes `eager`, after a timing's turns."""
    slowness, steps = weather(random.Random(seed)), itertools.count()
    passed = [0.0]

    def sampler(speed: float) -> float:
        passed[0] += SAMPLE_S
        return speed * slowness(next(steps))

    speeds = {"candidate": 1.0, "eager": eager, "control": eager}
    samplers = {name: partial(sampler, speed) for name, speed in speeds.items()}
    drawn = take_turns(samplers, budget_s=3 * ARM_S, precision=0.005, now=lambda: passed[0], seed=seed)
    arms = {name: arm(name, values) for name, values in drawn.items()}  # pyright: ignore[reportArgumentType]
    ratios = ratios_of(drawn)
    return speedup(Timing("some GPU", tuple(arms.values()), 1.0, 1, 1.0, noise_of(arms, ratios), (), ratios)).eager


@pytest.mark.parametrize("machine", MACHINES)
def test_equals_are_called_faster_in_at_most_one_of_a_hundred(machine: Weather):
    claims = [claimed(machine, 1.0, seed) for seed in range(TRIALS)]
    assert sum(claim is not None and claim > 1 for claim in claims) <= TRIALS / 100
    assert sum(claim is not None and claim < 1 for claim in claims) <= TRIALS / 100


@pytest.mark.parametrize("machine", MACHINES)
def test_three_percent_are_found_in_at_least_95_of_a_hundred(machine: Weather):
    claims = [claimed(machine, 1.03, seed) for seed in range(TRIALS)]
    assert sum(claim is not None and claim > 1 for claim in claims) >= TRIALS * 0.95
