"""A kernel's error against fp64, beside that of PyTorch's own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from cutesmith_evaluator.types import ErrorFigures
from cutesmith_server.page.chart import WIDTH, Mark, bottom_axis, chart, label, legend, line, mark
from cutesmith_server.page.markup import Markup, paragraph, section, table
from cutesmith_server.page.scales import Scale, logarithmic
from cutesmith_server.page.study import Study

_LEFT, _ROW = 210, 44
_MARKS: Mapping[Mark, str] = {"best": "this kernel", "baseline": "PyTorch eager"}
_MEANS = {
    "kept": "Both errors are within twice eager's own and four units in the last place.",
    "as eager": "Both errors are within those of eager as PyTorch runs it by default (TF32 in convolutions).",
    "lowered": "An error is larger than PyTorch's own: less precise than the module.",
}


def errors(found: Study) -> Markup:
    candidate = found.judged
    if candidate is None or candidate.error is None:
        return section("Precision", paragraph("Nothing was run, so nothing is known of its results."))
    return section(
        "Precision",
        paragraph(f"Precision {candidate.precision}. {_MEANS.get(candidate.precision or '', '')}"),
        _dots(candidate.error),
        legend(_MARKS, _MARKS),
        _figures(candidate.error),
    )


def _pairs(error: ErrorFigures) -> tuple[tuple[str, float, float], ...]:
    ours, theirs = error.candidate_pair, error.eager_pair
    return (
        ("rms: |out − ref| / |ref|", ours.rms, theirs.rms),
        ("max: max|out − ref| / max|ref|", ours.max, theirs.max),
    )


def _dots(error: ErrorFigures) -> Markup:
    pairs = _pairs(error)
    scale = logarithmic([value for _, *both in pairs for value in both], _LEFT, WIDTH - 30)
    bottom = 14 + _ROW * len(pairs)
    rows = [_row(scale, 30 + _ROW * place, *pair) for place, pair in enumerate(pairs)]
    words = "; ".join(f"{name.split(':')[0]} {ours:.2g}, eager {theirs:.2g}" for name, ours, theirs in pairs)
    axis = bottom_axis(scale, bottom, "error against fp64 (logarithmic)", 8, lambda value: f"{value:.0e}")
    return chart("Error against fp64", words, bottom + 44, axis, *rows)


def _row(scale: Scale, y: float, name: str, ours: float, theirs: float) -> Markup:
    return Markup(
        label(_LEFT - 10, y + 4, name.split(":")[0], "tick", "end")
        + line(scale(ours), y, scale(theirs), y, "whisker")
        + mark("baseline", scale(theirs), y, f"PyTorch eager: {theirs:.3g}")
        + mark("best", scale(ours), y, f"this kernel: {ours:.3g}")
    )


def _figures(error: ErrorFigures) -> Markup:
    rows = [
        (name, f"{ours:.3g}", f"{theirs:.3g}", f"{ours / theirs:.2g}×" if theirs else "–")
        for name, ours, theirs in _pairs(error)
    ]
    within = "within" if error.kernelbench_ok else "outside"
    caption = f"The check that comes nearest to the bound; {within} KernelBench's tolerance"
    return table(("figure", "this kernel", "PyTorch eager", "ratio"), rows, caption)
