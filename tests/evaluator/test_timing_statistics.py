"""Medians, their intervals, the order of turns, and what may be claimed from them."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_evaluator.speedup import speedup
from cutesmith_evaluator.types import Arm, Speedup, Timing
from cutesmith_evaluator.worker.timing_statistics import arm, median_interval, noise_of, settled, take_turns

samples = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=300)


@given(samples)
def test_the_interval_holds_the_median_and_comes_from_the_samples(values: list[float]):
    median, low, high = median_interval(values)
    assert median == statistics.median(values)
    assert low <= median <= high
    assert {low, high} <= set(values)


@given(samples, st.floats(0.1, 10))
def test_the_interval_scales_with_the_samples(values: list[float], factor: float):
    scaled = median_interval([value * factor for value in values])
    assert scaled == pytest.approx([each * factor for each in median_interval(values)])


def test_the_interval_holds_the_true_median_in_95_of_100_experiments():
    draw = random.Random(1)
    held = 0
    for _ in range(2000):
        _, low, high = median_interval([draw.expovariate(1.0) for _ in range(60)])
        held += low <= 0.6931 <= high
    assert 0.94 <= held / 2000 <= 0.99


def test_settled_needs_a_narrow_interval():
    assert settled([1.0, 1.001, 0.999] * 20, 0.005)
    assert not settled([0.8, 0.9, 1.0, 1.1, 1.2] * 12, 0.005)


class Machine:
    """A clock that only the samplers move."""

    def __init__(self, cost: dict[str, float], spread: float) -> None:
        self.time = 0.0
        self.order: list[str] = []
        self._cost = cost
        self._draw = random.Random(3)
        self._spread = spread

    def samplers(self):
        return {name: lambda name=name: self._sample(name) for name in self._cost}

    def _sample(self, name: str) -> float:
        self.order.append(name)
        self.time += self._cost[name]
        return self._cost[name] * 1e3 * self._draw.uniform(1 - self._spread, 1 + self._spread)


def test_turns_are_taken_in_changing_order_and_evenly():
    machine = Machine({"candidate": 0.001, "eager": 0.002, "control": 0.002}, spread=0.5)
    taken = take_turns(machine.samplers(), budget_s=0.5, precision=0.0, now=lambda: machine.time)
    assert len({len(each) for each in taken.values()}) == 1
    assert len(taken["eager"]) == pytest.approx(100, abs=2)
    rounds = [tuple(machine.order[start : start + 3]) for start in range(0, len(machine.order), 3)]
    assert all(sorted(each) == ["candidate", "control", "eager"] for each in rounds)
    assert len(set(rounds)) == 6


def test_sampling_stops_when_all_medians_are_settled():
    machine = Machine({"candidate": 0.001, "eager": 0.002}, spread=0.001)
    taken = take_turns(machine.samplers(), budget_s=100.0, precision=0.005, now=lambda: machine.time)
    assert len(taken["candidate"]) == 20


def test_slow_arms_still_get_their_least_samples():
    machine = Machine({"candidate": 5.0}, spread=0.5)
    taken = take_turns(machine.samplers(), budget_s=1.0, precision=0.0, now=lambda: machine.time)
    assert len(taken["candidate"]) == 10


def timing(candidate: Arm, eager: Arm, control: Arm, compiled: Arm) -> Timing:
    arms = {each.name: each for each in (candidate, eager, control, compiled)}
    return Timing("some GPU", tuple(arms.values()), 4200.0, 10**9, 0.9, noise_of(arms))


def around(name, median: float, spread: float = 0.002) -> Arm:
    return Arm(name, median, median * (1 - spread), median * (1 + spread), 100)


def test_a_speedup_is_claimed_above_the_noise_only():
    found = timing(around("candidate", 1.0), around("eager", 1.5), around("control", 1.501), around("compile", 1.003))
    assert 0.004 < found.noise < 0.006
    assert speedup(found) == Speedup(eager=1.5, compile=None)


def test_a_slower_candidate_has_a_speedup_below_one():
    found = timing(around("candidate", 2.0), around("eager", 1.0), around("control", 1.0), around("compile", 1.0))
    assert speedup(found) == Speedup(0.5, 0.5)


def test_a_drifting_control_raises_the_bar():
    found = timing(around("candidate", 1.0), around("eager", 1.1), around("control", 1.3), around("compile", 1.1))
    assert found.noise > 0.18
    assert speedup(found) == Speedup(None, None)


def test_nothing_is_claimed_without_arms():
    found = timing(around("candidate", 1.0), around("eager", 1.5), around("control", 1.5), around("compile", 1.5))
    assert speedup(replace(found, arms=())) == Speedup(None, None)
    assert speedup(replace(found, arms=found.arms[:2])) == Speedup(eager=1.5, compile=None)


@given(st.integers(0, 10_000))
def test_equal_arms_are_hardly_ever_told_apart(seed: int):
    draw = random.Random(seed)
    names = ("candidate", "eager", "control")
    arms = {name: arm(name, [draw.gauss(1.0, 0.02) for _ in range(100)]) for name in names}
    ratio = speedup(Timing("some GPU", tuple(arms.values()), 1.0, 1, 1.0, noise_of(arms))).eager
    assert ratio is None or abs(ratio - 1) < 0.03


def test_a_difference_of_3_percent_is_found():
    draw = random.Random(5)
    found = 0
    for _ in range(200):
        speeds = {"candidate": 1.0, "eager": 1.03, "control": 1.03}
        arms = {name: arm(name, [draw.gauss(speed, 0.01) for _ in range(100)]) for name, speed in speeds.items()}
        found += speedup(Timing("some GPU", tuple(arms.values()), 1.0, 1, 1.0, noise_of(arms))).eager is not None
    assert found >= 190
