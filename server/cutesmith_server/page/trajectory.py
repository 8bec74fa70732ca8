"""The job's way: each candidate a point, how fast it was or where it failed, when, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate
from cutesmith_evaluator.units import duration
from cutesmith_server import wording
from cutesmith_server.page.chart import WIDTH, Mark, bottom_axis, chart, label, left_axis, legend, line, mark
from cutesmith_server.page.markup import Markup, paragraph, section, table, tag
from cutesmith_server.page.scales import Scale, linear, logarithmic
from cutesmith_server.page.study import Attempt, Study

_LEFT, _LANE = 150, 26
_MEANINGS: Mapping[Mark, str] = {"best": "the best", "right": "right", "unknown": "not run", "failed": "failed"}


def trajectory(found: Study) -> Markup:
    attempts = found.attempts
    kinds: set[Mark] = {_kind(found, each.candidate) for each in attempts}
    return section("The job", paragraph(_ending(found)), _plot(found), legend(_MEANINGS, kinds), _rows(found))


def _ending(found: Study) -> str:
    if found.report is not None:
        return found.report.stopped
    return {"running": "The job is at work.", "cancelled": "The job was cancelled."}.get(found.job.state, "")


def _kind(found: Study, candidate: Candidate) -> Mark:
    if found.best is not None and candidate.id == found.best.id:
        return "best"
    if candidate.ok is None:
        return "unknown"
    return "right" if candidate.ok else "failed"


def _lane(candidate: Candidate) -> str:
    """Where a candidate without a time stands."""
    if candidate.ok is False:
        return f"failed: {candidate.stage}"
    return "right, not timed" if candidate.ok else "compiled, not run"


def _plot(found: Study) -> Markup:
    attempts = found.attempts
    timed = [ms for each in attempts if (ms := _ms(each.candidate)) is not None]
    lanes = list(dict.fromkeys(_lane(each.candidate) for each in attempts if _ms(each.candidate) is None))
    top, height = 34, 150 if timed else 0
    floor = top + height
    bottom = floor + 14 + _LANE * len(lanes)
    across, title = _across(attempts)
    up = logarithmic(timed, floor, top)
    rows = {name: floor + 14 + _LANE * place + _LANE / 2 for place, name in enumerate(lanes)}
    frame = [bottom_axis(across, bottom, title, top if timed else floor)]
    frame += [left_axis(up, _LEFT, "milliseconds (logarithmic)", WIDTH - 30)] if timed else []
    frame += [part for name, y in rows.items() for part in _lane_row(name, y)]
    points = [_point(found, each, place, across, up, rows) for place, each in enumerate(attempts, 1)]
    return chart("Candidates of the job", _words(attempts), bottom + 44, *frame, *points)


def _across(attempts: Sequence[Attempt]) -> tuple[Scale, str]:
    """By time where it is known of all, else by number."""
    times = [each.seconds for each in attempts]
    if all(each is not None for each in times):
        return linear([each for each in times if each is not None], _LEFT, WIDTH - 30), "seconds since the job began"
    return linear([float(len(attempts))], _LEFT, WIDTH - 30), "number of the candidate"


def _lane_row(name: str, y: float) -> Iterator[Markup]:
    yield line(_LEFT, y, WIDTH - 30, y, "grid")
    yield label(_LEFT - 8, y + 4, name, "tick", "end")


def _point(found: Study, each: Attempt, number: int, across: Scale, up: Scale, rows: dict[str, float]) -> Markup:
    ms = _ms(each.candidate)
    y = up(ms) if ms is not None else rows[_lane(each.candidate)]
    x = across(each.seconds if each.seconds is not None and "seconds" in _across(found.attempts)[1] else number)
    return mark(_kind(found, each.candidate), x, y, f"{number}. {each.candidate.id[:7]}: {_verdict(each.candidate)}")


def _ms(candidate: Candidate) -> float | None:
    return median_ms(candidate.timing) if candidate.timing is not None else None


def _verdict(candidate: Candidate) -> str:
    if candidate.ok is False:
        error = next((each.message for each in candidate.findings if each.severity == "error"), "not right")
        return f"failed at {candidate.stage}: {error}"
    return wording.headline(candidate)


def _rows(found: Study) -> Markup:
    rows = [_row(number, each) for number, each in enumerate(found.attempts, 1)]
    head = ("candidate", "from", "after", "time", "cost", "schedule", "verdict")
    return tag("details", tag("summary", f"All {len(rows)} candidates"), table(head, rows, "Candidates in their order"))


def _row(number: int, each: Attempt) -> Sequence[str]:
    candidate, ms = each.candidate, _ms(each.candidate)
    return (
        f"{number}. {candidate.id[:7]}",
        {"recipe": "recipe", "llm": "model", "user": "yours"}[candidate.origin],
        "–" if each.seconds is None else f"{each.seconds:.0f} s",
        "–" if ms is None else duration(ms),
        "–" if each.dollars is None else f"${each.dollars:.2f}",
        ", ".join(f"{name} {value}" for name, value in candidate.schedule.items()) or "–",
        _verdict(candidate),
    )


def _words(attempts: Sequence[Attempt]) -> str:
    right = sum(each.candidate.ok is True for each in attempts)
    failed = sum(each.candidate.ok is False for each in attempts)
    return f"{len(attempts)} candidates: {right} right, {failed} failed, {len(attempts) - right - failed} not run"
