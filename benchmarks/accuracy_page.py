"""Draws docs/images/accuracy.svg and writes its table into docs/accuracy.md from results/accuracy.jsonl, a device's
(accuracy_study.py), or while there is none from results/accuracy_emulated.jsonl (product_errors.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from accuracy_study import FP32, OURS, TF32, UNPROMOTED
from pages import put
from pictures import text
from product_errors import DEPTHS, DISTRIBUTIONS
from records import RESULTS, read_lines
from report import NOT_MEASURED
from suite import ROOT

Line = dict[str, Any]
PAGE = ROOT / "docs" / "accuracy.md"
IMAGE = ROOT / "docs" / "images" / "accuracy.svg"
COLOURS = {
    OURS: "#0969da",
    "split, 64": "#0969da",
    "split, 32": "#54aeff",
    FP32: "#1f2328",
    UNPROMOTED: "#8250df",
    TF32: "#bc4c00",
}
ACROSS = 3  # plots of a row
WIDE, HIGH = 250, 190  # of a plot,
STEP_ACROSS, STEP_DOWN = 320, 260  # and from one to the next
LEFT, TOP = 66, 56
WIDTH, HEIGHT = ACROSS * STEP_ACROSS + 20, 2 * STEP_DOWN + 30
EXPONENTS = range(-8, 1)  # of ten, on the axis of errors
HEAD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif"
  font-size="13" role="img" aria-label="Relative errors of fp32 products over depth, for five kinds of inputs">"""
STYLE = """text { fill: #1f2328 }
    .name { font-weight: 600 }
    .note { fill: #57606a; font-size: 11.5px }
    .grid { stroke: #d0d7de; stroke-width: 1 }
    .curve { fill: none; stroke-width: 2 }"""


def main() -> None:
    lines = read_lines(RESULTS / "accuracy.jsonl") or read_lines(RESULTS / "accuracy_emulated.jsonl")
    if lines:
        IMAGE.write_text(drawn(lines))
    put(PAGE, errors=table(lines))


def drawn(lines: Sequence[Line]) -> str:
    """A plot for each kind of inputs, and a legend in the last place."""
    parts = []
    for number, name in enumerate(DISTRIBUTIONS):
        parts += plot(name, [line for line in lines if line["inputs"] == name], *corner(number))
    parts += legend(*corner(len(DISTRIBUTIONS)), lines)
    frame = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#f6f8fa"/>'
    return "\n  ".join([HEAD, f"<style>\n    {STYLE}\n  </style>", frame, *parts]) + "\n</svg>\n"


def arithmetics(lines: Sequence[Line]) -> list[str]:
    return [name for name in COLOURS if name in lines[0]["errors"]]


def corner(number: int) -> tuple[int, int]:
    return LEFT + number % ACROSS * STEP_ACROSS, TOP + number // ACROSS * STEP_DOWN


def plot(name: str, lines: Sequence[Line], left: int, top: int) -> list[str]:
    made = [text(left, top - 14, name, "name")]
    for exponent in EXPONENTS:
        height = down(10.0**exponent, top)
        made.append(f'<path class="grid" d="M{left} {height:.1f}h{WIDE}"/>')
        if exponent % 2 == 0:
            made.append(text(left - 8, height + 4, f"1e{exponent}" if exponent else "1", "note", "end"))
    for depth in DEPTHS:
        made.append(text(across(depth, left), top + HIGH + 18, f"{depth}", "note", "middle"))
    ordered = sorted(lines, key=lambda line: line["depth"])
    for arithmetic in arithmetics(lines):
        points = [(line["depth"], line["errors"][arithmetic]) for line in ordered]
        made += curve(points, COLOURS[arithmetic], left, top)
    return made


def curve(points: Sequence[tuple[int, float]], colour: str, left: int, top: int) -> list[str]:
    places = [(f"{across(depth, left):.1f}", f"{down(error, top):.1f}") for depth, error in points]
    line = "M" + "L".join(f"{x} {y}" for x, y in places)
    dots = [f'<circle cx="{x}" cy="{y}" r="2.6" fill="{colour}"/>' for x, y in places]
    return [f'<path class="curve" stroke="{colour}" d="{line}"/>', *dots]


def across(depth: float, left: int) -> float:
    return left + 14 + math.log(depth / DEPTHS[0]) / math.log(DEPTHS[-1] / DEPTHS[0]) * (WIDE - 28)


def down(error: float, top: int) -> float:
    """Where an error lies; what is off the axis, at its end."""
    first, last = EXPONENTS[0], EXPONENTS[-1]
    share = (math.log10(max(error, 1e-30)) - first) / (last - first)
    return top + HIGH - min(max(share, 0.0), 1.0) * HIGH


def legend(left: int, top: int, lines: Sequence[Line]) -> list[str]:
    made = []
    for number, arithmetic in enumerate(arithmetics(lines)):
        colour = COLOURS[arithmetic]
        height = top + 22 + 24 * number
        made += [
            f'<path class="curve" stroke="{colour}" d="M{left} {height - 4}h30"/>',
            text(left + 40, height, arithmetic),
        ]
    notes = ("relative rms error against float64", "over the depth of the product", lines[-1]["device"])
    return [*made, *(text(left, top + 150 + 18 * k, note, "note") for k, note in enumerate(notes))]


def table(lines: list[Line]) -> str:
    if not lines:
        return NOT_MEASURED
    shown = arithmetics(lines)
    rows = ["| depth | inputs | " + " | ".join(shown) + " |", "| ---: | --- |" + " ---: |" * len(shown)]
    for name in DISTRIBUTIONS:
        for line in sorted((x for x in lines if x["inputs"] == name), key=lambda line: line["depth"]):
            errors = " | ".join(f"{line['errors'][one]:.1e}" for one in shown)
            rows.append(f"| {line['depth']} | {name} | {errors} |")
    return "\n".join([*rows, "", f"On {lines[-1]['device']}, {lines[-1]['date']}."])


if __name__ == "__main__":
    main()
