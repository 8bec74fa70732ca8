"""Edits of whole lines in a Python file, as drawn for the corpus of patches."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from cutesmith_agent.patches import Change, Patch
from cutesmith_agent.patches.text import indent_of

_MOST_LINES = 5
_SPACINGS = [(" = ", "="), (", ", ","), (" + ", "+"), (" * ", "*"), ("[", "[ "), ("(", "( "), ("]", " ]")]


@dataclass(frozen=True)
class Case:
    """`expected`: the result that a person would come to; None where refusing is right."""

    category: str
    source: str
    patch: Patch
    expected: str | None


@dataclass(frozen=True)
class Block:
    """Lines first to stop - 1 (0-based) of a file, and what they become."""

    lines: tuple[str, ...]
    first: int
    stop: int
    new: tuple[str, ...]

    @property
    def old(self) -> tuple[str, ...]:
        return self.lines[self.first : self.stop]

    @property
    def source(self) -> str:
        return "\n".join(self.lines)

    @property
    def expected(self) -> str:
        return "\n".join((*self.lines[: self.first], *self.new, *self.lines[self.stop :]))

    def change(self, find: Sequence[str] | None = None, new: Sequence[str] | None = None, shift: int = 0) -> Change:
        quoted, given = self.old if find is None else find, self.new if new is None else new
        return Change("\n".join(quoted), "\n".join(given), max(1, self.first + 1 + shift))


def draw_block(source: str, draw: random.Random) -> Block | None:
    """A block that reads so once, and a change of it."""
    lines = tuple(source.split("\n"))
    first = draw.randrange(len(lines))
    stop = min(len(lines), first + draw.choice(range(1, _MOST_LINES + 1)))
    block = Block(lines, first, stop, ())
    if not block.old[0].strip() or not block.old[-1].strip() or not is_once(block):
        return None
    block = replace(block, new=_changed(block.old, draw))
    return block if block.new != block.old else None


def is_once(block: Block) -> bool:
    """Whether no other lines read the same, layout and comments aside, as a whole or as a part of a longer line."""
    wanted = packed("\n".join(block.old))
    return bool(wanted) and packed(block.source).count(wanted) == 1


@cache
def packed(text: str) -> str:
    """The text without blanks and comments."""
    return re.sub(r"\s+|(?m:\s*#.*$)", "", text)


def _changed(old: tuple[str, ...], draw: random.Random) -> tuple[str, ...]:
    """What a model would make of the lines: another number, name or operator, a line more or less."""
    at = draw.randrange(len(old))
    line = old[at]
    indent = indent_of(line)
    become = draw.choice(
        (
            [re.sub(r"\b\d+\b", lambda found: str(int(found[0]) * 2 + 1), line)],
            [re.sub(r" ([+*]) ", " - ", line)],
            [re.sub(r"\b(row|x|tidx|index|value)\b", r"\1_next", line)],
            [line, f"{indent}extra = {draw.randint(0, 99)}"],
            [f"{indent}before = {draw.randint(0, 99)}  # kept for the tail", line],
            [] if len(old) > 1 else [f"{indent}pass"],
        )
    )
    return (*old[:at], *become, *old[at + 1 :])


def made(block: Block, change: Change, *, source: str | None = None, expected: str | None = None) -> Case:
    """A case with one edit, of the block's own file and result but for those that are given."""
    return Case("", source or block.source, Patch("", (change,)), expected or block.expected)


def stale(draw: random.Random) -> int:
    """By how many lines a line number is off."""
    return draw.choice((-1, 1)) * draw.randint(3, 60)


@cache
def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def is_in_string(block: Block) -> bool:
    """Whether a string of several lines is in the block or around it: its indentation is part of its value."""
    return any('"""' in line for line in block.old) or block.first in _string_lines(block.source)


@cache
def _string_lines(source: str) -> frozenset[int]:
    """Lines (0-based) of strings that have several."""
    strings = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    spans = [(node.lineno - 1, node.end_lineno or 0) for node in strings if node.end_lineno != node.lineno]
    return frozenset(line for first, stop in spans for line in range(first, stop))


def respaced(lines: Sequence[str], draw: random.Random) -> list[str]:
    """Other blanks around operators and brackets, outside strings and indentation."""
    return [_respaced_line(line, draw) if not re.search("['\"#]", line) else line for line in lines]


def _respaced_line(line: str, draw: random.Random) -> str:
    body = line.lstrip()
    for old, new in draw.sample(_SPACINGS, 4):
        body = body.replace(old, new)
    return indent_of(line) + body + draw.choice(("", " ", "  "))


def near_duplicate(line: str, draw: random.Random) -> str | None:
    """The line with one name, number or operator changed."""
    changes = [
        (r"\b(\d+)\b", lambda found: str(int(found[1]) + 1)),
        (r"\b([a-z]\w*)\b(?=.*=)", lambda found: found[1] + "2"),
        (r" \+ ", lambda found: " - "),
        (r"\brow\b", lambda found: "col"),
    ]
    pattern, new = draw.choice(changes)
    twin = re.sub(pattern, new, line, count=1)
    return twin if twin != line else None
