"""The search over schedules: from the best, never twice, and with an end that is explained."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.tuning import PATIENCE, distance, next_draft, ranking, why_stop
from cutesmith_evaluator.types import Arm, Candidate, Finding, Timing

SCHEDULES = [{"threads": threads, "vector": vector} for threads in (128, 256, 512) for vector in (1, 2, 4)]
DRAFTS = tuple(Draft(f"draft {number}", schedule) for number, schedule in enumerate(SCHEDULES))


def verdict(ms: float | None, fraction: float = 0.5) -> Candidate:
    """A candidate that took `ms`, or (None) failed."""
    if ms is None:
        return Candidate("id", "recipe", "compile", False)
    timing = Timing("d", (Arm("candidate", ms, ms, ms, 9),), 4200.0, 1, fraction, 0.01)
    return Candidate("id", "recipe", "time", True, timing=timing)


def searched(times: dict[int, float | None]) -> dict[int, Candidate]:
    """The trials of a search in which each draft takes the given time."""
    trials: dict[int, Candidate] = {}
    while why_stop(DRAFTS, trials, 0.0) is None:
        index = next_draft(DRAFTS, trials)
        assert index is not None
        assert index not in trials
        trials[index] = verdict(times[index])
    return trials


@given(st.lists(st.none() | st.floats(0.5, 9), min_size=len(DRAFTS), max_size=len(DRAFTS)))
def test_a_search_tries_nothing_twice_and_ranks_what_passed(times: list[float | None]):
    trials = searched(dict(enumerate(times)))
    passed = [(time, index) for index in trials if (time := times[index]) is not None]
    assert ranking(trials) == [index for _, index in sorted(passed)]
    if not passed:
        assert len(trials) == len(DRAFTS)


@given(st.permutations(range(len(DRAFTS))))
def test_each_step_is_taken_from_the_best_so_far(order: list[int]):
    trials: dict[int, Candidate] = {}
    while (index := next_draft(DRAFTS, trials)) is not None:
        if best := ranking(trials)[:1]:
            nearest = min(
                distance(DRAFTS[other], DRAFTS[best[0]]) for other in range(len(DRAFTS)) if other not in trials
            )
            assert distance(DRAFTS[index], DRAFTS[best[0]]) == nearest
        else:
            assert index == 0
        trials[index] = verdict(1.0 + order[index])
    assert len(trials) == len(DRAFTS)


def test_failing_drafts_are_passed_over_in_their_order():
    assert list(searched(dict.fromkeys(range(len(DRAFTS))))) == list(range(len(DRAFTS)))


def test_the_roofline_ends_the_search():
    trials = {0: verdict(1.0, 0.80), 1: verdict(0.9, 0.99)}
    assert why_stop(DRAFTS, trials, 0.0) is None
    why = why_stop(DRAFTS, {**trials, 2: verdict(0.8, 1.004)}, 0.0)
    assert why == "the best moves data at 100% of the copy bandwidth"


def test_a_plateau_ends_the_search():
    trials = {0: verdict(1.0)} | {number: verdict(0.995) for number in range(1, PATIENCE)}
    assert why_stop(DRAFTS, trials, 0.0) is None
    assert "a plateau" in str(why_stop(DRAFTS, {**trials, PATIENCE: verdict(None)}, 0.0))
    assert why_stop(DRAFTS, {**trials, PATIENCE: verdict(0.9)}, 0.0) is None


def test_time_ends_the_search():
    assert why_stop(DRAFTS, {0: verdict(None)}, 299.0) is None
    assert "300 s" in str(why_stop(DRAFTS, {0: verdict(1.0)}, 301.0))
    assert "300 s" in str(why_stop(DRAFTS, {0: verdict(None)}, 301.0))


def test_workers_lost_in_a_row_end_the_search_while_nothing_passed():
    dead = replace(verdict(None), findings=(Finding("worker-died", "It died."),))
    assert why_stop(DRAFTS, {0: dead, 1: verdict(None), 2: dead, 3: dead}, 0.0) is None
    assert "lost over 3 in a row" in str(why_stop(DRAFTS, {0: dead, 1: dead, 2: dead}, 0.0))
    assert "a plateau" in str(why_stop(DRAFTS, {0: verdict(1.0), 1: dead, 2: dead, 3: dead}, 0.0))


def test_a_verdict_that_was_taken_back_is_no_best():
    assert ranking({0: replace(verdict(1.0), ok=False), 1: verdict(2.0)}) == [1]
