"""Ways in which a model quotes a block in other words, or among lines that look alike."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from cutesmith_agent.patches import Patch
from cutesmith_agent.patches.text import indent_of
from patch_blocks import (
    Block,
    Case,
    draw_block,
    is_in_string,
    is_once,
    made,
    near_duplicate,
    respaced,
)


def comments(block: Block, draw: random.Random) -> Case | None:
    """Comments dropped, added or reworded around the code that is quoted."""
    if is_in_string(block) or all(line.lstrip().startswith("#") for line in block.old):
        return None
    find = [_recommented(line, draw) for line in block.old]
    find = [line for line in find if line is not None]
    if draw.random() < 0.3:
        find.insert(0, f"{indent_of(find[0])}# as measured on the last run")
    changed = [line for line in find if line.strip()]
    return made(block, block.change(find)) if changed and tuple(find) != block.old else None


def _recommented(line: str, draw: random.Random) -> str | None:
    if line.lstrip().startswith("#"):
        return draw.choice((None, line.replace("the ", ""), line + " (see above)"))
    code, mark, comment = line.partition("  # ")
    if mark and "'" not in line and '"' not in line:
        return draw.choice((code, f"{code} # {comment.upper()}", f"{code}  # {comment}, as before"))
    return f"{line}  # noqa" if draw.random() < 0.2 and line.strip() and not re.search("['\"]", line) else line


def messages(block: Block, draw: random.Random) -> Case | None:
    """A message or docstring in slightly other words, with the code around it exact."""
    words = [("the ", "this "), ("is not", "isn't"), ("differ", "do differ"), (" or ", " and/or "), ("every", "each")]
    find = list(block.old)
    strings = [n for n, line in enumerate(find) if re.search(r'"[^"]{12,}"', line)]
    if not strings or len(find) < 2:
        return None
    for n in strings:
        old, new = draw.choice(words)
        find[n] = re.sub(r'"[^"]{12,}"', lambda found: found[0].replace(old, new, 1), find[n])  # noqa: B023
    is_whole = block.source.count('"""', 0, len("\n".join(block.lines[: block.first]))) % 2 == 0
    return made(block, block.change(find)) if tuple(find) != block.old and is_whole else None


def typeset(block: Block, draw: random.Random) -> Case | None:
    """Quotes, blanks and dashes as word processors set them, invisible characters."""
    find = list(block.old)
    for old, new in draw.sample([('"', "”"), (" = ", "\u00a0= "), (" - ", " − "), ("(", "\u200b("), ("'", "’")], 3):
        find = [line.replace(old, new) for line in find]
    return made(block, block.change(find)) if tuple(find) != block.old and not is_in_string(block) else None


def foreign_comment(block: Block, draw: random.Random) -> Case | None:
    """Comments and names beyond ASCII in the file, quoted as they are or decomposed."""
    assigned = re.match(r"\s+(\w+) = ", block.old[0])
    if is_in_string(block) or re.search("['\"#(]", block.old[0]) or not assigned:
        return None
    name = assigned[1]
    lines = tuple(re.sub(rf"\b{name}\b", f"größe_{name}", line) for line in block.lines)
    marked = (*lines[: block.first], lines[block.first] + "  # × 2 – für die Kachel 瓦", *lines[block.first + 1 :])
    block = replace(block, lines=marked)
    block = replace(block, new=(*block.old, f"{indent_of(block.old[0])}größe = größe_{name}"))
    find = [line.replace("ö", "o\u0308") for line in block.old] if draw.random() < 0.5 else block.old
    return made(block, block.change(find)) if is_once(block) else None


def swapped(block: Block, draw: random.Random) -> Case | None:
    """Two neighbouring assignments quoted in the other order."""
    if len(block.old) != 2 or is_in_string(block) or len({indent_of(line) for line in block.old}) > 1:
        return None
    if any(re.search("[\"'#:]", line) or not re.match(r"\s*\w+ = .*[^(\[]$", line) for line in block.old):
        return None
    return made(block, block.change(block.old[::-1]))


def among_near_duplicates(block: Block, draw: random.Random) -> Case | None:
    """A line that differs little stands beside the block, and the block is quoted in another layout."""
    line, *others = block.old
    twin = near_duplicate(line, draw)
    if twin is None or is_in_string(block) or len(others) > 1 or re.search("['\"#]", line) or "=" not in line:
        return None
    at = draw.choice((block.first, block.stop, max(0, block.first - 1)))
    lines = (*block.lines[:at], twin, *block.lines[at:])
    first = block.first + (at <= block.first)
    moved = Block(lines, first, first + len(block.old), block.new)
    find = respaced(moved.old, draw)
    return made(moved, moved.change(find, shift=draw.choice((0, -1, 1, 2)))) if is_once(moved) else None


def several(block: Block, draw: random.Random) -> Case | None:
    """Two or three edits of different kinds in one patch."""
    blocks = [block]
    for _ in range(30):
        other = draw_block(block.source, draw)
        if other and all(other.stop < each.first or other.first > each.stop for each in blocks):
            blocks.append(other)
        if len(blocks) == 3:
            break
    changes = [each.change(respaced(each.old, draw)) for each in blocks]
    lines = list(block.lines)
    for each in sorted(blocks, key=lambda each: -each.first):
        lines[each.first : each.stop] = each.new
    return Case("", block.source, Patch("", tuple(changes)), "\n".join(lines)) if len(blocks) > 1 else None


def misspelt(block: Block, draw: random.Random) -> Case | None:
    """A name spelt wrongly. A person sees through it; we do not, for of acc5 and acc6 one may be misspelt too."""
    names = re.findall(r"\b[a-z]{5,}\b", block.old[0])
    if is_in_string(block) or not names or re.search("['\"#]", block.old[0]):
        return None
    name = draw.choice(names)
    wrong = name[:2] + name[3:]
    find = [re.sub(rf"\b{name}\b", wrong, line) for line in block.old]
    return made(block, block.change(find))
