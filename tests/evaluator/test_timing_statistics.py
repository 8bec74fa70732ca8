"""Medians, paired ratios, their intervals, the order of turns, and what may be claimed from them."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_evaluator.speedup import speedup
from cutesmith_evaluator.types import Arm, Conditions, Ratio, Speedup, Timing
from cutesmith_evaluator.worker.sensors import Reading, conditions_of
from cutesmith_evaluator.worker.timing_checks import condition_findings
from cutesmith_evaluator.worker.timing_statistics import (
    LEAST_NOISE,
    arm,
    median_interval,
    noise_of,
    paired_ratio,
    ratios_of,
    settled,
    take_turns,
    warm_up,
)

samples = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=300)
pairs = st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=100)


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


def ratio_of(drawn: list[tuple[float, float]]) -> Ratio:
    return paired_ratio("eager", "candidate", {"eager": [a for a, _ in drawn], "candidate": [b for _, b in drawn]})


@settings(max_examples=50)
@given(pairs)
def test_a_ratio_lies_in_its_interval_and_within_those_of_the_rounds(drawn: list[tuple[float, float]]):
    found = ratio_of(drawn)
    each = [eager / candidate for eager, candidate in drawn]
    assert found.low <= found.ratio <= found.high
    assert min(each) * (1 - 1e-9) <= found.ratio <= max(each) * (1 + 1e-9)


@settings(max_examples=50)
@given(pairs, st.lists(st.floats(0.5, 2.0), min_size=100, max_size=100))
def test_what_meets_both_arms_of_a_round_alike_changes_no_ratio(drawn: list[tuple[float, float]], weather: list[float]):
    felt = [(a * factor, b * factor) for (a, b), factor in zip(drawn, weather, strict=False)]
    assert ratio_of(felt).ratio == pytest.approx(ratio_of(drawn).ratio)
    assert ratio_of(felt).low == pytest.approx(ratio_of(drawn).low)


@settings(max_examples=50)
@given(pairs)
def test_the_other_way_round_a_ratio_is_its_inverse(drawn: list[tuple[float, float]]):
    assert ratio_of([(b, a) for a, b in drawn]).ratio == pytest.approx(1 / ratio_of(drawn).ratio)


def test_settled_needs_a_narrow_interval():
    assert settled({"candidate": [1.0, 1.001, 0.999] * 20}, 0.005)
    assert not settled({"candidate": [0.8, 0.9, 1.0, 1.1, 1.2] * 12}, 0.005)


def test_settled_asks_for_the_ratios_too():
    steady = [1.0, 1.001, 0.999] * 20
    assert settled({"candidate": steady, "eager": [2 * each for each in steady]}, 0.005)
    assert not settled({"candidate": steady, "eager": [0.8, 0.9, 1.0, 1.1, 1.2] * 12}, 0.005)


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
    heard: list[str] = []
    taken = take_turns(machine.samplers(), budget_s=0.5, precision=0.0, now=lambda: machine.time, between=heard.append)
    assert len({len(each) for each in taken.values()}) == 1
    assert len(taken["eager"]) == pytest.approx(100, abs=2)
    rounds = [tuple(machine.order[start : start + 3]) for start in range(0, len(machine.order), 3)]
    assert all(sorted(each) == ["candidate", "control", "eager"] for each in rounds)
    assert len(set(rounds)) == 6
    assert heard == machine.order


def test_sampling_stops_when_all_is_settled():
    machine = Machine({"candidate": 0.001, "eager": 0.002}, spread=0.001)
    taken = take_turns(machine.samplers(), budget_s=100.0, precision=0.005, now=lambda: machine.time)
    assert len(taken["candidate"]) == 30


def test_slow_arms_still_get_their_least_samples():
    machine = Machine({"candidate": 5.0}, spread=0.5)
    taken = take_turns(machine.samplers(), budget_s=1.0, precision=0.0, now=lambda: machine.time)
    assert len(taken["candidate"]) == 10


def test_warming_up_ends_when_the_machine_is_steady():
    machine = Machine({"candidate": 0.001, "eager": 0.001}, spread=0.0)
    speeds = iter([3.0] * 12 + [2.0] * 12)
    slowing = {name: lambda call=call: call() * next(speeds, 1.0) for name, call in machine.samplers().items()}
    assert warm_up(slowing, budget_s=100.0, now=lambda: machine.time)
    assert len(machine.order) == 48  # windows of 3, 2, 1 and 1


def test_warming_up_ends_when_time_is_up():
    machine = Machine({"candidate": 0.001}, spread=0.0)
    speeds = (1.1**step for step in range(10_000))
    assert not warm_up(
        {"candidate": lambda: machine.samplers()["candidate"]() * next(speeds)}, budget_s=0.05, now=lambda: machine.time
    )


def timing(candidate: float, eager: float, control: float, compiled: float, spread: float = 0.002) -> Timing:
    medians = {"candidate": candidate, "eager": eager, "control": control, "compile": compiled}
    draw = random.Random(2)
    drawn = {name: [median * draw.gauss(1, spread) for _ in range(100)] for name, median in medians.items()}
    return timed(drawn)


def timed(drawn: dict[str, list[float]]) -> Timing:
    arms = {name: arm(name, values) for name, values in drawn.items()}  # pyright: ignore[reportArgumentType]
    ratios = ratios_of(drawn)
    return Timing("some GPU", tuple(arms.values()), 4200.0, 10**9, 0.9, noise_of(arms, ratios), (), ratios)


def test_a_speedup_is_claimed_above_the_noise_only():
    found = timing(1.0, 1.5, 1.501, 1.003)
    assert found.noise == LEAST_NOISE
    assert speedup(found).eager == pytest.approx(1.5, abs=0.002)
    assert speedup(found).compile is None


def test_a_slower_candidate_has_a_speedup_below_one():
    found = speedup(timing(2.0, 1.0, 1.0, 1.0))
    assert (found.eager, found.compile) == (pytest.approx(0.5, abs=0.002), pytest.approx(0.5, abs=0.002))


def test_a_control_that_is_off_raises_the_bar():
    found = timing(1.0, 1.1, 1.3, 1.1)
    assert found.noise > 0.18
    assert speedup(found) == Speedup(None, None)


def test_nothing_is_claimed_without_ratios():
    found = timing(1.0, 1.5, 1.5, 1.5)
    assert speedup(replace(found, ratios=())) == Speedup(None, None)
    assert speedup(replace(found, ratios=found.ratios[:1])).compile is None


COOL = Conditions(1980.0, 3201.0, 400.0, 45.0, (), 20)


@pytest.mark.parametrize(
    "other",
    [replace(COOL, sm_mhz=1755.0), replace(COOL, memory_mhz=2619.0), replace(COOL, throttled=("power cap",))],
)
def test_a_verdict_is_withheld_from_an_arm_that_ran_under_other_conditions(other: Conditions):
    found = timing(1.0, 1.5, 1.5, 1.5)
    conditions = {"eager": other}
    arms = tuple(replace(each, conditions=conditions.get(each.name, COOL)) for each in found.arms)
    claimed = speedup(replace(found, arms=arms))
    assert claimed.eager is None
    assert claimed.compile is not None


def test_conditions_that_are_alike_or_unknown_withhold_nothing():
    found = timing(1.0, 1.5, 1.5, 1.5)
    nearly = replace(COOL, sm_mhz=1965.0, watts=520.0, celsius=60.0)
    arms = tuple(replace(each, conditions=nearly if each.name == "eager" else COOL) for each in found.arms)
    assert speedup(replace(found, arms=arms)).eager is not None
    assert speedup(found).eager is not None


def test_no_arms_make_no_noise():
    assert noise_of({}, ()) == 0.0
    assert noise_of({"candidate": Arm("candidate", 1.0, 0.9, 1.1, 20)}, ()) == pytest.approx(0.2)


def reading(**more: float | None) -> Reading:
    return replace(Reading(1980.0, 3201.0, 400.0, 45.0, 0), **more)  # pyright: ignore[reportArgumentType]


def test_conditions_are_medians_and_what_held_clocks_back_half_of_the_time():
    readings = [
        reading(sm_mhz=mhz, throttles=bits) for mhz, bits in ((1980.0, 0x4), (1965.0, 0x4 | 0x40), (1755.0, 0x1))
    ]
    found = conditions_of(readings)
    assert found == Conditions(1965.0, 3201.0, 400.0, 45.0, ("power cap",), 3)


def test_what_a_driver_does_not_say_is_not_known():
    found = conditions_of([reading(watts=None, throttles=None)])
    assert found is not None
    assert (found.watts, found.throttled) == (None, ())
    assert conditions_of([]) is None


def test_an_arm_under_other_conditions_is_named():
    arms = {each.name: replace(each, conditions=COOL) for each in timing(1.0, 1.5, 1.5, 1.5).arms}
    assert list(condition_findings(arms)) == []
    arms["eager"] = replace(arms["eager"], conditions=replace(COOL, sm_mhz=1600.0))
    (finding,) = condition_findings(arms)
    assert finding.kind == "conditions-differ"
    assert (
        "not compared with eager: the multiprocessors ran at 1980 MHz in one and 1600 MHz in the other"
        in finding.message
    )
