"""The indentation of `replace`, carried over from the indentation that `find` has to the one that the file has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from cutesmith_agent.patches.text import indent_of
from cutesmith_agent.patches.tokens import tokens

_TAB = 4


def width(blanks: str) -> int:
    return len(blanks.expandtabs(_TAB))


@dataclass(frozen=True)
class Indentation:
    """Width in `find` to width in the file: `real + (quoted width - quoted) * step`.

    `first`: the file's width for a first line that was quoted without its indentation."""

    quoted: int
    real: int
    step: Fraction
    first: int | None = None

    def apply(self, text: str, line_end: str) -> str | None:
        """The text's lines at their places in the file; None where one would stand left of the margin."""
        inside = _inside_strings(text)
        lines = []
        for number, line in enumerate(text.split("\n")):
            moved = self._moved(line, is_first=number == 0) if number not in inside and line.strip() else line
            if moved is None:
                return None
            lines.append(moved)
        return line_end.join(lines)

    def _moved(self, line: str, *, is_first: bool) -> str | None:
        blanks = indent_of(line)
        target = self.real + (width(blanks) - self.quoted) * self.step
        if is_first and self.first is not None and not blanks:
            target = Fraction(self.first)
        return None if target < 0 or target.denominator != 1 else " " * int(target) + line[len(blanks) :]


def fit(pairs: Sequence[tuple[int, int]], *, first_is_bare: bool) -> Indentation | None:
    """The rule that takes each quoted width to the file's; None where none does.

    `pairs`: (quoted, real) widths by line. first_is_bare: the first pair is of a line quoted from its first character
    on, whose indentation may have been left out."""
    rule = _line_through(pairs)
    if rule is None and first_is_bare and len(pairs) > 1:
        rest = _line_through(pairs[1:])
        return rest and Indentation(rest.quoted, rest.real, rest.step, pairs[0][1])
    return rule


def _line_through(pairs: Sequence[tuple[int, int]]) -> Indentation | None:
    quoted, real = pairs[0]
    step = next((Fraction(r - real, q - quoted) for q, r in pairs if q != quoted), Fraction(1))
    fits = all(real + (q - quoted) * step == r for q, r in pairs)
    return Indentation(quoted, real, step) if fits and step > 0 else None


def _inside_strings(text: str) -> set[int]:
    """Lines (0-based) that begin inside a string which is part of a statement: moving them would change its value.

    A string that stands first on its line is taken for a docstring, which moves with its code."""
    inside: set[int] = set()
    for token in tokens(text).code:
        line = text.rfind("\n", 0, token.start) + 1
        if token.kind in ("string", "prose") and text[line : token.start].strip():
            first = text.count("\n", 0, token.start)
            inside.update(range(first + 1, text.count("\n", 0, token.end) + 1))
    return inside
