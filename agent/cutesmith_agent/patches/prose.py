"""How alike two texts are, and whether they may be the same one reworded."""

from __future__ import annotations

import re
from functools import cache

from diff_match_patch import diff_match_patch

_CODE_WORD = re.compile(r"\{[^}]*\}|-*\w*(?:\d|_|(?<=[a-z])[A-Z])[\w-]*|(?<!\w)--?\w[\w-]*")
REWORDED = 0.6  # alike enough to be one comment in two wordings
MARGIN = 0.15  # by which the best must be ahead of the next


@cache
def _matcher() -> diff_match_patch:
    matcher = diff_match_patch()
    matcher.Diff_Timeout = 0.05  # seconds; past it the diff is coarser, and the texts count as less alike
    return matcher


def likeness(a: str, b: str) -> float:
    """1 for equal texts, 0 for texts with nothing in common: blanks and case apart."""
    a, b = (" ".join(text.split()).lower() for text in (a, b))
    if not a or not b:
        return float(a == b)
    matcher = _matcher()
    return 1 - matcher.diff_levenshtein(matcher.diff_main(a, b)) / max(len(a), len(b))


def code_words(text: str) -> list[str]:
    """The words that a rewording keeps: numbers, names such as acc_5 and numTiles, options, fields of f-strings."""
    return _CODE_WORD.findall(text)


def is_reworded(a: str, b: str) -> bool:
    """Whether both may be the same comment or message."""
    return a == b or (code_words(a) == code_words(b) and likeness(a, b) >= REWORDED)
