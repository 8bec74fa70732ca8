"""Edits of real CuTe files as a model would send them, drifted in known ways, each with the one right result.

A case starts from an exact edit: a block of whole lines and what replaces it. The category then changes how the model
quotes the block, or the file behind the model's back, while what is meant stays known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import patch_layouts as layouts
import patch_refusals as refusals
import patch_words as words
from patch_blocks import (
    Block,
    Case,
    draw_block,
    parses,
)

Maker = Callable[[Block, random.Random], Case | None]
RARE = ("misspelt name",)
_TRIES = 400


def corpus(sources: Sequence[str], per_category: int, seed: int = 0) -> list[Case]:
    """`per_category` cases of each category (half of the rare ones), the same for the same arguments."""
    return [
        case
        for name, make in CATEGORIES.items()
        for case in _cases(
            name, make, sources, per_category // 2 if name in RARE else per_category, random.Random(f"{seed} {name}")
        )
    ]


def _cases(name: str, make: Maker, sources: Sequence[str], count: int, draw: random.Random) -> Iterator[Case]:
    made = 0
    for _ in range(_TRIES * count):
        if made == count:
            return
        block = draw_block(draw.choice(sources), draw)
        case = block and make(block, draw)
        if block and case and parses(case.source) and parses(case.expected or block.expected):
            made += 1
            yield replace(case, category=name)
    raise AssertionError(f"only {made} of {count} cases of {name} in {_TRIES * count} tries")


CATEGORIES: dict[str, Maker] = {
    "exact": layouts.exact,
    "stale line number": layouts.stale_number,
    "moved since": layouts.moved,
    "other blanks": layouts.spaces,
    "dedented": layouts.dedented,
    "first line bare": layouts.bare_first_line,
    "two-space indentation": layouts.two_spaces,
    "tabs": layouts.tabs,
    "CR LF": layouts.windows,
    "with line numbers": layouts.numbered,
    "last line end": layouts.line_ends,
    "call reflowed": layouts.reflowed,
    "literals respelt": layouts.respelt,
    "other comments": words.comments,
    "reworded messages": words.messages,
    "typeset characters": words.typeset,
    "beyond ASCII": words.foreign_comment,
    "lines swapped": words.swapped,
    "among near-duplicates": words.among_near_duplicates,
    "several edits": words.several,
    "misspelt name": words.misspelt,
    "near-duplicate of a deleted line": refusals.deleted,
    "twice in the file": refusals.twice,
    "one bad edit of two": refusals.one_bad_of_several,
    "overlapping edits": refusals.overlapping,
    "elided middle": refusals.elided,
    "result is no Python": refusals.unparsable,
    "part of a longer line": refusals.inside_longer,
}
