"""HTML and SVG as text. What is no `Markup` is escaped, whatever it holds."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def markup(content: str | None) -> Markup:
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(content or "").translate(_INVISIBLE))


# Controls that a document must not hold, those that make text read in another order than it is in, and halves of
# characters.
_CONTROLS = (*range(9), 11, 12, *range(14, 32), 127, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_INVISIBLE = dict.fromkeys((*_CONTROLS, *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}")


def joined(parts: Iterable[str | None], between: str = "") -> Markup:
    return Markup(between.join(markup(part) for part in parts if part))


def tag(name: str, *content: str | None, **attributes: str | float | None) -> Markup:
    """An element. Attributes: `class_` is class, other underscores are dashes; None leaves one out."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{named}>{joined(content)}</{name}>")


def _value(value: str | float) -> str:
    return markup(value) if isinstance(value, str) else f"{value:.6g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str | None]], caption: str) -> Markup:
    """The first cell of a row names it."""
    top = tag("tr", *(tag("th", name, scope="col") for name in head))
    lines = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    return tag("table", tag("caption", caption), tag("thead", top), tag("tbody", *lines))


def section(title: str, *content: str | None) -> Markup:
    """Nothing without content."""
    if not any(content):
        return Markup("")
    name = "".join(each if each.isalnum() else "-" for each in title.lower())
    return tag("section", tag("h2", title, id=name), *content, aria_labelledby=name)


def paragraph(*content: str | None, class_: str | None = None) -> Markup:
    return tag("p", *content, class_=class_)


def line_link(line: int | None, text: str) -> Markup:
    """A link to a line of the kernel's source on the page."""
    return markup(text) if line is None else tag("a", text, href=f"#L{line}", data_line=str(line))
