"""Draws docs/images/bandwidth.svg and writes its table into docs/performance.md from results/bandwidth.jsonl."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bandwidth import OPERATORS, SIZES, by_operator
from pages import put
from pictures import text
from records import RESULTS, read_lines
from report import NOT_MEASURED, PAGE, provenance
from suite import ROOT

Line = dict[str, Any]
IMAGE = ROOT / "docs" / "images" / "bandwidth.svg"
NAMES = {
    "Pointwise": "pointwise (SiLU)",
    "RowSoftmax": "row softmax",
    "LayerNorm": "layer norm",
    "Sum": "sum, read only",
}
COLOURS = {"Pointwise": "#0969da", "RowSoftmax": "#bc4c00", "LayerNorm": "#1a7f37", "Sum": "#8250df"}
WIDTH, HEIGHT = 980, 470
LEFT, RIGHT, TOP, BOTTOM = 80, 950, 60, 410  # of the plot
HEAD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif"
  font-size="14" role="img" aria-label="Bytes per second of kernels over the size of their task, from 4 KB to 8 GB">"""
STYLE = """text { fill: #1f2328 }
    .note { fill: #57606a; font-size: 12.5px }
    .grid { stroke: #d0d7de; stroke-width: 1 }
    .curve { fill: none; stroke-width: 2.2 }
    .yardstick { fill: none; stroke: #57606a; stroke-width: 1.6 }"""


@dataclass(frozen=True)
class Curve:
    """Points by size, smallest first, of bytes and GB/s. A yardstick has dashes for a colour."""

    name: str
    points: dict[int, tuple[float, float]]
    colour: str = ""
    dashes: str = ""

    @property
    def style(self) -> str:
        if self.colour:
            return f'class="curve" stroke="{self.colour}"'
        return f'class="yardstick" stroke-dasharray="{self.dashes}"'


def main() -> None:
    lines = read_lines(RESULTS / "bandwidth.jsonl")
    if lines:
        IMAGE.write_text(drawn(curves(by_operator(lines)), lines[-1]["environment"]["device"]))
    put(PAGE, bandwidth=table(lines))


def curves(found: dict[str, list[Line]]) -> list[Curve]:
    """PyTorch's copy and sum first."""
    sizes = [(size, of_size(size, found)) for size in SIZES]
    yardsticks = [
        Curve(name, {size: (size, yardstick(lines, arm)) for size, lines in sizes if lines}, dashes=dashes)
        for name, arm, dashes in (("PyTorch's copy", "copy", "6 4"), ("PyTorch's sum", "read", "2 3"))
    ]
    return yardsticks + [Curve(NAMES[name], points_of(found[name]), COLOURS[name]) for name in OPERATORS]


def of_size(size: int, found: dict[str, list[Line]]) -> dict[str, Line]:
    """The operators that were measured at this size."""
    return {name: line for name, lines in found.items() for line in lines if line["case"] == f"{name} {size}"}


def yardstick(lines: dict[str, Line], arm: str) -> float:
    """Timed beside each operator: the median."""
    return statistics.median(line["gbps"][arm] for line in lines.values())


def points_of(lines: Iterable[Line]) -> dict[int, tuple[float, float]]:
    return {int(line["case"].split()[1]): (line["bytes"], line["gbps"]["candidate"]) for line in lines}


def drawn(shown: Sequence[Curve], device: str) -> str:
    """The picture: bytes on a logarithmic axis, GB/s on a linear one."""
    top = 1000 * math.ceil(max(rate for curve in shown for _, rate in curve.points.values()) / 1000)
    x, y = horizontal, vertical(top)
    parts = [text(LEFT - 60, 34, f"GB/s on {device}, L2 flushed before each call", "note")]
    for rate in range(0, top + 1, 1000):
        parts += [
            f'<path class="grid" d="M{LEFT} {y(rate):.1f}H{RIGHT}"/>',
            text(LEFT - 10, y(rate) + 4, f"{rate:,}", "note", "end"),
        ]
    for size in SIZES:
        parts.append(text(x(size), BOTTOM + 22, size_words(size), "note", "middle"))
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 46, "bytes that a call reads and writes", "note", "middle"))
    for number, curve in enumerate(shown):
        parts += [*path(curve, x, y), *legend(curve, TOP + 20 + 22 * number)]
    frame = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#f6f8fa"/>'
    return "\n  ".join([HEAD, f"<style>\n    {STYLE}\n  </style>", frame, *parts]) + "\n</svg>\n"


def horizontal(size: float) -> float:
    first, last = math.log(SIZES[0]), math.log(SIZES[-1])
    return LEFT + 20 + (math.log(size) - first) / (last - first) * (RIGHT - LEFT - 50)


def vertical(top: float) -> Callable[[float], float]:
    return lambda rate: BOTTOM - rate / top * (BOTTOM - TOP)


def path(curve: Curve, x: Callable[[float], float], y: Callable[[float], float]) -> list[str]:
    """Lines between points, faint where sizes between them were not measured, and dots."""
    places = {size: f"{x(moved):.1f} {y(rate):.1f}" for size, (moved, rate) in curve.points.items()}
    parts = []
    for one, other in pairwise(places):
        faint = "" if SIZES.index(other) == SIZES.index(one) + 1 else ' stroke-opacity="0.3"'
        parts.append(f'<path {curve.style}{faint} d="M{places[one]}L{places[other]}"/>')
    dots = (each.split() for each in places.values()) if curve.colour else ()
    return parts + [f'<circle cx="{across}" cy="{down}" r="3" fill="{curve.colour}"/>' for across, down in dots]


def legend(curve: Curve, down: float) -> list[str]:
    return [f'<path {curve.style} d="M{LEFT + 20} {down - 4}h30"/>', text(LEFT + 60, down, curve.name)]


def table(lines: list[Line]) -> str:
    """Of each size the kernels' GB/s, and their share of the copy or, for the sum, of PyTorch's sum in the same run."""
    found = by_operator(lines)
    if not lines:
        return NOT_MEASURED
    head = f"| bytes | copy | PyTorch's sum | {' | '.join(NAMES[name] for name in OPERATORS)} |"
    rows = [head, f"| ---: |{' ---: |' * (2 + len(OPERATORS))}"]
    for size in SIZES:
        if there := of_size(size, found):
            yardsticks = " | ".join(rate_words(yardstick(there, arm)) for arm in ("copy", "read"))
            cells = " | ".join(cell(there[name]) if name in there else "–" for name in OPERATORS)
            rows.append(f"| {size_words(size)} | {yardsticks} | {cells} |")
    return "\n".join([*rows, "", provenance(lines)])


def cell(line: Line) -> str:
    rates = line["gbps"]
    share = rates["candidate"] / rates["read" if line["operator"] == "Sum" else "copy"]
    wrong = "" if line["ok"] and line["precision"] == "kept" else ", not right"
    return f"{rate_words(rates['candidate'])} (×{share:.2f}{wrong})"


def rate_words(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def size_words(size: int) -> str:
    """4096 is 4 KB; the largest, of decimal bytes, 8 GB."""
    for unit, base in (("GB", 30), ("MB", 20)):
        if size >= 1 << base:
            return f"{math.ceil(size / (1 << base))} {unit}"
    return f"{size >> 10} KB"


if __name__ == "__main__":
    main()
