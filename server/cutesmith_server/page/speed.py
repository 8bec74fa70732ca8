"""How long each arm takes, and how they compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutesmith_evaluator.types import Arm, Timing
from cutesmith_evaluator.units import duration
from cutesmith_server import wording
from cutesmith_server.page.chart import WIDTH, bottom_axis, chart, label, line
from cutesmith_server.page.markup import Markup, paragraph, section, table, tag
from cutesmith_server.page.scales import Scale, linear
from cutesmith_server.page.study import Study

_NAMES = {
    "candidate": "this kernel",
    "eager": "PyTorch eager",
    "compile": "torch.compile",
    "max-autotune": "torch.compile, max-autotune",
    "control": "eager once more (control)",
    "adopted": "your class with the kernel in",
    "adopted-compile": "that, under torch.compile",
}
_LEFT, _ROW = 210, 30


def speed(found: Study) -> Markup:
    candidate = found.judged
    if candidate is None or candidate.timing is None:
        return section("Speed", paragraph(_not_timed(found)))
    timing = candidate.timing
    return section(
        "Speed",
        paragraph(
            tag("strong", wording.headline(candidate)), f", measured on {timing.device}: {wording.conditions(timing)}."
        ),
        _bars(timing),
        _arms(timing),
        _ratios(timing),
        paragraph(_beside(timing), class_="note"),
    )


def _not_timed(found: Study) -> str:
    estimate = found.report.estimate_ms if found.report is not None else None
    words = "Nothing was timed: that takes a CUDA device."
    return words if estimate is None else f"{words} At best {duration(estimate, 3)}, by an estimate from the roofline."


def _bars(timing: Timing) -> Markup:
    arms = timing.arms
    bottom = 12 + _ROW * len(arms)
    scale = linear([arm.high_ms for arm in arms], _LEFT, WIDTH - 90)
    axis = bottom_axis(scale, bottom, "milliseconds of a call (median, 95 % interval)", 4)
    words = "; ".join(f"{_NAMES[arm.name]} {duration(arm.median_ms)}" for arm in arms)
    rows = [part for place, arm in enumerate(arms) for part in _bar(scale, 8 + _ROW * place, arm)]
    return chart("Time of a call", words, bottom + 44, axis, *rows)


def _bar(scale: Scale, y: float, arm: Arm) -> Iterator[Markup]:
    end, low, high, middle = scale(arm.median_ms), scale(arm.low_ms), scale(arm.high_ms), y + 10
    kind = "ours" if arm.name in ("candidate", "adopted", "adopted-compile") else "theirs"
    yield label(_LEFT - 10, middle + 4, _NAMES[arm.name], "tick", "end")
    yield tag("rect", x=_LEFT, y=y, width=max(end - _LEFT, 1), height=20, class_=f"bar {kind}")
    yield line(low, middle, high, middle, "whisker")
    yield line(low, middle - 5, low, middle + 5, "whisker")
    yield line(high, middle - 5, high, middle + 5, "whisker")
    yield label(high + 8, middle + 4, duration(arm.median_ms), "tick")


def _arms(timing: Timing) -> Markup:
    rows = [
        (
            _NAMES[arm.name],
            duration(arm.median_ms),
            f"{duration(arm.low_ms)} to {duration(arm.high_ms)}",
            str(arm.samples),
        )
        for arm in timing.arms
    ]
    return table(
        ("arm", "median", "95 % interval", "samples"), rows, "Times, samples of all arms interleaved, L2 flushed"
    )


def _ratios(timing: Timing) -> Markup:
    rows: Sequence[tuple[str, ...]] = [
        (f"{_NAMES[each.arm]} over {_NAMES[each.base]}", f"{each.ratio:.3g}×", f"{each.low:.3g} to {each.high:.3g}")
        for each in timing.ratios
    ]
    return (
        table(("what", "ratio", "99 % interval"), rows, "Ratios of samples of the same rounds") if rows else Markup("")
    )


def _beside(timing: Timing) -> str:
    told = [
        f"{timing.fraction_of_copy:.0%} of the bandwidth of a copy in the same run ({timing.copy_gbps:,.0f} GB/s)",
        f"noise of the control {timing.noise:.1%}",
    ]
    launches = wording.launching(timing)
    return f"{'; '.join(told)}.{f' A call, the host included: {launches}.' if launches else ''}"
