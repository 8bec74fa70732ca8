"""What the charts are drawn with: a frame with axes, and marks that differ in shape, not in colour alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal

from cutesmith_server.page.markup import Markup, tag
from cutesmith_server.page.scales import Scale, short

WIDTH = 720
Mark = Literal["best", "right", "baseline", "unknown", "failed"]


def chart(title: str, description: str, height: float, *content: str) -> Markup:
    """A picture that a screen reader reads the description of; the figures are in a table beside it."""
    drawn = tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *content,
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_label=f"{title}. {description}",
    )
    return tag("figure", drawn, tabindex="0", role="group", aria_label=title)


def label(x: float, y: float, text: str, class_: str = "", anchor: str | None = None) -> Markup:
    return tag("text", text, x=x, y=y, class_=class_ or None, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def bottom_axis(scale: Scale, y: float, title: str, top: float, words: Callable[[float], str] = short) -> Markup:
    """The values below a chart, with lines through it."""
    parts = [
        part
        for value in scale.ticks()
        for part in (
            line(scale(value), top, scale(value), y, "grid"),
            label(scale(value), y + 16, words(value), "tick", "middle"),
        )
    ]
    middle = (scale.start + scale.end) / 2
    return tag("g", *parts, line(scale.start, y, scale.end, y, "axis"), label(middle, y + 34, title, "name", "middle"))


def left_axis(scale: Scale, x: float, title: str, right: float, words: Callable[[float], str] = short) -> Markup:
    parts = [
        part
        for value in scale.ticks()
        for part in (
            line(x, scale(value), right, scale(value), "grid"),
            label(x - 6, scale(value) + 4, words(value), "tick", "end"),
        )
    ]
    return tag("g", *parts, line(x, scale.start, x, scale.end, "axis"), label(x, scale.end - 10, title, "name"))


def mark(kind: Mark, x: float, y: float, told: str) -> Markup:
    """One point: filled what is right, open what was not run or is PyTorch's, a cross what failed."""
    shapes = {
        "best": lambda: tag("path", d=f"M{x:.1f} {y - 7:.1f}l7 7-7 7-7-7z"),
        "right": lambda: tag("circle", cx=x, cy=y, r=4.5),
        "baseline": lambda: tag("rect", x=x - 4.5, y=y - 4.5, width=9, height=9),
        "unknown": lambda: tag("circle", cx=x, cy=y, r=4.5),
        "failed": lambda: tag("path", d=f"M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8"),
    }
    return tag("g", tag("title", told), shapes[kind](), class_=f"mark {kind}")


def legend(meanings: Mapping[Mark, str], shown: Collection[Mark]) -> Markup:
    """What the marks that are shown mean."""
    items = [
        tag(
            "li",
            tag("svg", mark(kind, 8, 8, words), viewBox="0 0 16 16", width="16", height="16", aria_hidden="true"),
            f" {words}",
        )
        for kind, words in meanings.items()
        if kind in shown
    ]
    return tag("ul", *items, class_="legend")
