"""Where the kernel, its predecessors and PyTorch stand between a device's memory and its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cutesmith_agent.estimate import MEMORY
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate, Roofline, Timing
from cutesmith_evaluator.units import duration
from cutesmith_server import wording
from cutesmith_server.page.chart import WIDTH, Mark, bottom_axis, chart, label, left_axis, legend, line, mark
from cutesmith_server.page.markup import Markup, paragraph, section, tag
from cutesmith_server.page.scales import Scale, logarithmic
from cutesmith_server.page.study import Study

_LEFT, _TOP, _BOTTOM = 80, 34, 300
_ARMS = (("eager", "PyTorch eager"), ("compile", "torch.compile"), ("max-autotune", "torch.compile, max-autotune"))


_MARKS: Mapping[Mark, str] = {
    "best": "this kernel",
    "right": "other candidates, and kernels of earlier jobs",
    "baseline": "PyTorch",
    "unknown": "the roof for this task; nothing was timed",
}


@dataclass(frozen=True)
class Roof:
    """`memory` bytes a second; `arithmetic` operations a second, None where the arch is not known."""

    memory: float
    arithmetic: float | None
    intensity: float  # operations a byte

    def at(self, intensity: float) -> float:
        reached = intensity * self.memory
        return reached if self.arithmetic is None else min(reached, self.arithmetic)


@dataclass(frozen=True)
class Point:
    kind: Mark
    rate: float  # operations a second
    words: str


def roofline(found: Study) -> Markup:
    candidate = found.judged
    profile = candidate.profile if candidate is not None else None
    place = profile.roofline if profile is not None else None
    if candidate is None or profile is None or place is None:
        return Markup("")
    told = paragraph(f"Limited by {wording.limits(profile)}. The roof is by {place.basis}.")
    roof = _roof(candidate, place)
    if roof is None:
        return section("Roofline", told)
    points = _points(found, candidate, place, roof)
    kinds: set[Mark] = {point.kind for point in points}
    return section("Roofline", told, _plot(roof, points), legend(_MARKS, kinds))


def _roof(candidate: Candidate, place: Roofline) -> Roof | None:
    """None for a task without arithmetic, or an arch whose memory is not known."""
    memory = MEMORY.get(candidate.profile.arch) if candidate.profile else None
    bandwidth = candidate.timing.copy_gbps * 1e9 if candidate.timing else memory.bytes_per_s if memory else 0.0
    if place.intensity <= 0 or bandwidth <= 0:
        return None
    return Roof(bandwidth, place.ridge * bandwidth if place.ridge else None, place.intensity)


def _points(found: Study, best: Candidate, place: Roofline, roof: Roof) -> list[Point]:
    """Those that were timed, the best last, so that it lies on top."""
    others = [each.candidate for each in found.attempts if each.candidate.id != best.id]
    points = [
        Point("right", rate, f"{each.id[:7]}: {_told(rate, ms)}")
        for each in (*found.earlier, *others)
        if each.ok and each.timing is not None and (known := _rate(each.timing, place, "candidate")) is not None
        for rate, ms in (known,)
    ]
    if best.timing is None:
        return [*points, Point("unknown", roof.at(roof.intensity), f"not timed; at best {duration(place.floor_ms, 3)}")]
    for arm, name in _ARMS:
        if (known := _rate(best.timing, place, arm)) is not None:
            points.append(Point("baseline", known[0], f"{name}: {_told(*known)}"))
    if (known := _rate(best.timing, place, "candidate")) is not None:
        points.append(Point("best", known[0], f"this kernel: {_told(*known)}"))
    return points


def _rate(timing: Timing, place: Roofline, arm: str) -> tuple[float, float] | None:
    """(operations a second, milliseconds) of an arm."""
    ms = median_ms(timing, arm)
    return (place.intensity * timing.bytes / (ms * 1e-3), ms) if ms else None


def _told(rate: float, ms: float) -> str:
    return f"{rate / 1e9:,.0f} GFLOP/s, {duration(ms)}"


def _plot(roof: Roof, points: list[Point]) -> Markup:
    ridge = roof.arithmetic / roof.memory if roof.arithmetic else roof.intensity
    across = logarithmic([roof.intensity / 3, roof.intensity * 3, ridge / 2, ridge * 4], _LEFT, WIDTH - 30)
    rates = [roof.at(across.low), roof.at(across.high), roof.at(roof.intensity), *(point.rate for point in points)]
    up = logarithmic([rate / 1e9 for rate in rates], _BOTTOM, _TOP)
    axes = (
        bottom_axis(across, _BOTTOM, "intensity: operations for each of the fewest bytes", _TOP),
        left_axis(up, _LEFT, "GFLOP/s", WIDTH - 30),
    )
    x = across(roof.intensity)
    marks = [mark(point.kind, x, up(point.rate / 1e9), point.words) for point in points]
    here = line(x, _TOP, x, _BOTTOM, "here")
    return chart(
        "Roofline",
        _words(roof, points),
        _BOTTOM + 44,
        *axes,
        here,
        _line_of(roof, across, up),
        *marks,
        _names(points, x, up),
    )


def _line_of(roof: Roof, across: Scale, up: Scale) -> Markup:
    ridge = roof.arithmetic / roof.memory if roof.arithmetic else across.high
    corners = [across.low, min(max(ridge, across.low), across.high), across.high]
    path = " ".join(f"{across(each):.1f},{up(roof.at(each) / 1e9):.1f}" for each in corners)
    return tag("polyline", points=path, class_="roof")


def _names(points: list[Point], x: float, up: Scale) -> Markup:
    """Beside the marks of PyTorch and of this kernel, each below the one before."""
    shown = sorted((point for point in points if point.kind != "right"), key=lambda point: -point.rate)
    names: list[Markup] = []
    last = -100.0
    for point in shown:
        last = max(up(point.rate / 1e9), last + 15)
        names.append(label(x + 12, last + 4, point.words, "tick"))
    return tag("g", *names)


def _words(roof: Roof, points: list[Point]) -> str:
    at_best = f"At {roof.intensity:.3g} operations a byte the roof is {roof.at(roof.intensity) / 1e9:,.0f} GFLOP/s"
    return "; ".join([at_best, *(point.words for point in points if point.kind != "right")])
