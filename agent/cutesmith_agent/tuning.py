"""Which schedule to try next, and when to stop. Pure: drafts and what was measured of them in, a choice out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.errors import WorkerDied, WorkerError, WorkerTimeout
from cutesmith_evaluator.types import Candidate

ROOFLINE = 1.0  # of the copy bandwidth: below it another schedule may still gain
GAIN = 0.01  # a smaller one is no progress
PATIENCE = 3  # schedules in a row without progress
BUDGET_S = 300.0
DEATHS = 3  # workers lost in a row before any draft has passed: it is not the schedule

_LOST = {kind.kind for kind in (WorkerError, WorkerDied, WorkerTimeout)}
Trials = Mapping[int, Candidate]  # by the draft's index, in the order they were tried


def ranking(trials: Trials) -> list[int]:
    """The drafts that passed and were timed, fastest first."""
    times = {index: _ms(candidate) for index, candidate in trials.items()}
    return sorted((index for index, ms in times.items() if ms is not None), key=lambda index: (times[index], index))


def next_draft(drafts: Sequence[Draft], trials: Trials) -> int | None:
    """The untried draft nearest to the best one so far: it differs in the fewest schedule parameters.

    Drafts come best guess first, which decides between equals, and everything until one has passed."""
    untried = [index for index in range(len(drafts)) if index not in trials]
    best = ranking(trials)[:1]
    if not untried or not best:
        return untried[0] if untried else None
    return min(untried, key=lambda index: (distance(drafts[index], drafts[best[0]]), index))


def distance(one: Draft, other: Draft) -> int:
    """The number of schedule parameters in which two drafts differ; another kind of kernel counts as one."""
    names = one.schedule.keys() & other.schedule.keys()
    return sum(one.schedule[n] != other.schedule[n] for n in names) + (one.schedule.keys() != other.schedule.keys())


def why_stop(drafts: Sequence[Draft], trials: Trials, elapsed_s: float) -> str | None:
    """The reason to stop searching, in words; None: go on."""
    best = ranking(trials)[:1]
    fraction = _fraction(trials[best[0]]) if best else 0.0
    if fraction >= ROOFLINE:
        return f"the best moves data at {fraction:.0%} of the copy bandwidth"
    if best and _since_progress(trials) >= PATIENCE:
        return f"a plateau, the last {PATIENCE} gained less than {GAIN:.0%}"
    if len(trials) == len(drafts):
        return "all were tried"
    if elapsed_s > BUDGET_S:
        return f"the {BUDGET_S:.0f} s for tuning were up"
    if not best and _ends_in_deaths(trials):
        return f"the worker was lost over {DEATHS} in a row"
    return None


def _ends_in_deaths(trials: Trials) -> bool:
    last = list(trials.values())[-DEATHS:]
    lost = [any(finding.kind in _LOST for finding in candidate.findings) for candidate in last]
    return len(last) == DEATHS and all(lost)


def _since_progress(trials: Trials) -> int:
    """The trials since one was faster than the best before it by the least gain that counts."""
    best, since = float("inf"), 0
    for candidate in trials.values():
        ms = _ms(candidate)
        if ms is not None and ms < best * (1 - GAIN):
            best, since = ms, 0
        else:
            since += 1
    return since


def _ms(candidate: Candidate) -> float | None:
    return median_ms(candidate.timing) if candidate.ok and candidate.timing else None


def _fraction(candidate: Candidate) -> float:
    return candidate.timing.fraction_of_copy if candidate.timing else 0.0
