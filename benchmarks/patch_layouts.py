"""Ways in which a model quotes a block in another layout than the file has, or by a stale line number."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from cutesmith_agent.patches.text import indent_of
from patch_blocks import (
    Block,
    Case,
    is_in_string,
    made,
    respaced,
    stale,
)


def exact(block: Block, draw: random.Random) -> Case:
    return made(block, replace(block.change(), near_line=draw.choice((None, block.first + 1))))


def stale_number(block: Block, draw: random.Random) -> Case:
    return made(block, block.change(shift=stale(draw)))


def moved(block: Block, draw: random.Random) -> Case:
    """Code was added above since the model read the file, or the end of the file now stands first."""
    added = [f"MOVED_{number} = {number}" for number in range(draw.randint(1, 40))]
    at = draw.choice([0, *(n for n, line in enumerate(block.lines[: block.first + 1]) if line.startswith("def "))])
    prefix = (*block.lines[:at], *added, "", *block.lines[at : block.first])
    rest = block.lines[block.stop :]
    source = "\n".join((*prefix, *block.old, *rest))
    return made(block, block.change(), source=source, expected="\n".join((*prefix, *block.new, *rest)))


def spaces(block: Block, draw: random.Random) -> Case | None:
    find = respaced(block.old, draw)
    if draw.random() < 0.3:
        find.insert(draw.randint(1, len(find)), "")
    return made(block, block.change(find, shift=stale(draw))) if tuple(find) != block.old else None


def dedented(block: Block, draw: random.Random) -> Case | None:
    """Quoted and replaced without the indentation that all lines share, or with another one."""
    texts = [line for line in (*block.old, *block.new) if line.strip()]
    shared = min(len(indent_of(line)) for line in texts)
    if not shared or is_in_string(block):
        return None
    kept = " " * draw.choice((0, 0, 2))
    find, new = ([kept + line[shared:] if line.strip() else line for line in lines] for lines in (block.old, block.new))
    return made(block, block.change(find, new))


def bare_first_line(block: Block, draw: random.Random) -> Case | None:
    """The first line quoted from its first character on, the others with their indentation; so is the new text."""
    if not block.new or is_in_string(block) or not indent_of(block.old[0]):
        return None
    if indent_of(block.new[0]) != indent_of(block.old[0]):
        return None
    find, new = ([lines[0].lstrip(), *lines[1:]] for lines in (block.old, block.new))
    return made(block, block.change(find, new, shift=stale(draw)))


def _rescaled(block: Block, unit: str) -> Case | None:
    if is_in_string(block) or any(len(indent_of(line)) % 4 for line in (*block.old, *block.new)):
        return None
    find, new = (
        [re.sub(r"(?m)^ +", lambda found: unit * (len(found[0]) // 4), line) for line in lines]
        for lines in (block.old, block.new)
    )
    return made(block, block.change(find, new)) if tuple(find) != block.old else None


def two_spaces(block: Block, draw: random.Random) -> Case | None:
    return _rescaled(block, "  ")


def tabs(block: Block, draw: random.Random) -> Case | None:
    return _rescaled(block, "\t")


def windows(block: Block, draw: random.Random) -> Case:
    """CR LF in the file or in the patch."""
    change = block.change()
    if draw.random() < 0.5:
        return made(block, replace(change, find=change.find.replace("\n", "\r\n")))
    source, expected = (text.replace("\n", "\r\n") for text in (block.source, block.expected))
    return made(block, change, source=source, expected=expected)


def numbered(block: Block, draw: random.Random) -> Case:
    """Copied with the line numbers of the prompt, on each line or (None) with the margin that numbers every fifth."""
    mark = draw.choice(("| ", "|", ": ", "\t", None, None, None))

    def margin(number: int) -> str:
        if mark is not None:
            return f"{number:4d}{mark}"
        return f"{number:4d}| " if number % 5 == 0 else " " * 6

    find, new = (
        [f"{margin(block.first + 1 + n)}{line}" for n, line in enumerate(lines)] for lines in (block.old, block.new)
    )
    return made(block, block.change(find, new if draw.random() < 0.5 else None))


def line_ends(block: Block, draw: random.Random) -> Case | None:
    """A last line end in one of the two texts only, or in both, or blank lines around both."""
    if not "".join(block.new[-1:]).strip() or is_in_string(block):
        return None
    change = block.change()
    before, after, new_after = draw.choice((("", "\n", ""), ("", "", "\n"), ("", "\n", "\n"), ("\n", "\n", "\n")))
    new = before + change.replace + new_after if before else change.replace + new_after
    return made(block, replace(change, find=before + change.find + after, replace=new))


def reflowed(block: Block, draw: random.Random) -> Case | None:
    """One call over several lines, or several lines of one call as one."""
    line = block.old[0]
    if len(block.old) > 1 or is_in_string(block) or line.count("(") != 1 or ", " not in line:
        return None
    head, _, rest = line.partition("(")
    inner, closing, tail = rest.rpartition(")")
    if not closing or re.search(r"['\"#\[{]", line) or re.match(r"\s*(def|class|with)\b", line) or "," in head + tail:
        return None
    indent = indent_of(line)
    parts = [f"{indent}    {part.strip()}," for part in inner.split(",")]
    return made(block, block.change([f"{head}(", *parts, f"{indent}){tail}"]))


def respelt(block: Block, draw: random.Random) -> Case | None:
    """Other quotes, another spelling of a number."""
    find = [re.sub(r"(?<![\w'\"])\"([^\"'{}\\]*)\"(?![\"'])", r"'\1'", line) for line in block.old]
    find = [re.sub(r"(?<![\w.])(\d+)\.0(?![\d.\w])", r"\1.", line) for line in find]
    return made(block, block.change(find)) if tuple(find) != block.old and not is_in_string(block) else None
