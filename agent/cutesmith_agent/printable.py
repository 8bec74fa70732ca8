"""Text that shows what it says: no terminal's commands, and no marks that reorder or hide what follows them."""

from __future__ import annotations

import re

# Control characters but tab and line ends; bidirectional marks; a byte order mark within text; half characters.
_HIDDEN = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with a visible mark for every character that hides, reorders or commands."""
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def hidden_line(source: str) -> int | None:
    """The first line (1-based) with such a character; None: there is none."""
    found = _HIDDEN.search(source)
    return source.count("\n", 0, found.start()) + 1 if found else None
