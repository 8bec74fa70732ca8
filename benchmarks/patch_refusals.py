"""Patches that must not be applied."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from cutesmith_agent.patches import Change, Patch
from cutesmith_agent.patches.text import indent_of
from patch_blocks import (
    Block,
    Case,
    draw_block,
    is_in_string,
    is_once,
    near_duplicate,
    packed,
    parses,
    respaced,
    stale,
)


def _refuse(source: str, *changes: Change) -> Case:
    return Case("", source, Patch("", changes), None)


def deleted(block: Block, draw: random.Random) -> Case | None:
    """What is quoted is gone, and a line stands there that differs in a name, number or operator."""
    if is_in_string(block) or re.search("['\"#]", "".join(block.old)) or "=" not in block.old[0]:
        return None
    twin = near_duplicate(block.old[0], draw)
    if twin is None:
        return None
    lines = (*block.lines[: block.first], twin, *block.lines[block.first + 1 :])
    find = respaced(block.old, draw) if draw.random() < 0.5 else block.old
    source = "\n".join(lines)
    return _refuse(source, block.change(find)) if packed("\n".join(block.old)) not in packed(source) else None


def twice(block: Block, draw: random.Random) -> Case | None:
    """The same lines stand at two places; the line number, right or stale, is all that could tell."""
    indent = indent_of(block.old[0])
    if is_in_string(block) or not re.match(r"\s+[\w.]+(\(| = )", block.old[0]) or len(block.old) > 1:
        return None
    places = [
        n for n, line in enumerate(block.lines) if line.startswith(indent) and re.match(r"\w+ = ", line[len(indent) :])
    ]
    if not places:
        return None
    at = draw.choice(places)
    source = "\n".join((*block.lines[:at], *block.old, *block.lines[at:]))
    return _refuse(source, block.change(shift=draw.choice((0, 1, stale(draw)))))


def one_bad_of_several(block: Block, draw: random.Random) -> Case | None:
    bad = deleted(block, draw)
    good = bad and next((each for _ in range(30) if (each := draw_block(block.source, draw))), None)
    if bad is None or good is None or (good.first <= block.stop and block.first <= good.stop):
        return None
    return _refuse(bad.source, *bad.patch.changes, good.change())


def overlapping(block: Block, draw: random.Random) -> Case | None:
    if len(block.old) < 3:
        return None
    inner = Block(block.lines, block.first + 1, block.stop - 1, ("pass",))
    return _refuse(block.source, block.change(), inner.change()) if inner.old[0].strip() and is_once(inner) else None


def elided(block: Block, draw: random.Random) -> Case | None:
    """The middle left out as "..."."""
    if len(block.old) < 4:
        return None
    return _refuse(block.source, block.change([block.old[0], "    ...", block.old[-1]]))


def unparsable(block: Block, draw: random.Random) -> Case | None:
    broken = replace(block, new=(*block.new, " " * draw.choice((1, 3)) + draw.choice(("y = (", ") + 1", "for"))))
    return _refuse(block.source, broken.change()) if not parses(broken.expected) else None


def inside_longer(block: Block, draw: random.Random) -> Case | None:
    """What was a statement is now a part of a longer one."""
    line = block.old[0]
    is_assignment = re.match(r"\s*\w+ = [^'\"#]*[\w)\]]$", line) and "lambda" not in line and line.count(" = ") == 1
    if len(block.old) > 1 or is_in_string(block) or not is_assignment:
        return None
    grown = (
        f"{line}0" if line[-1].isdigit() else f"{line} * 2",
        line.replace(" = ", "_all = "),
        re.sub(r"(\w+ = )", r"self.\1", line),
        re.sub(r"(\w+ = )", r"old_\1", line),
    )
    lines = (*block.lines[: block.first], draw.choice(grown), *block.lines[block.stop :])
    find = draw.choice((line.strip(), line.strip(), line))
    return _refuse("\n".join(lines), replace(block.change(), find=find))
