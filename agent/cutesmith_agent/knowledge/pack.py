"""The sections of the knowledge pack, as they lie in `sections/`.

A file is a head (`title`, `categories`, `archs`; each one line) and, below a line of dashes, Markdown. Its Python is
complete: tests compile it for every arch that the head names, and run it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

_FOLDER = Path(__file__).parent
_EXAMPLE = re.compile(r"(?:\n\n[^\n]*:)?\n\n```.*?```", re.DOTALL)  # with the line that announces it


@dataclass(frozen=True)
class Section:
    """`name`: of the file. `categories`: of the tasks that it is for, those it helps most first, none where it is about
    errors. `archs`: those that it is for, by their beginnings; empty for all."""

    name: str
    title: str
    text: str
    categories: tuple[str, ...]
    archs: tuple[str, ...]

    @cached_property
    def gist(self) -> str:
        """The text without its example."""
        return _EXAMPLE.sub("", self.text)

    def fits(self, arch: str) -> bool:
        """Whether it is of use for an arch ("sm_90a")."""
        return not self.archs or arch.startswith(self.archs)


@cache
def pack() -> tuple[Section, ...]:
    """All sections, by name."""
    return tuple(_read(path) for path in sorted((_FOLDER / "sections").glob("*.md")))


@cache
def fixed_part() -> str:
    """The guide that every prompt begins with: the same text each time, so that it can be cached."""
    return (_FOLDER / "guide.md").read_text(encoding="utf-8")


def _read(path: Path) -> Section:
    head, _, text = path.read_text(encoding="utf-8").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    categories, archs = _words(fields["categories"], "none"), _words(fields["archs"], "all")
    return Section(path.stem, fields["title"], text.strip(), tuple(categories), tuple(archs))


def _words(text: str, nothing: str) -> list[str]:
    return [] if text == nothing else [word.strip() for word in text.split(",")]
