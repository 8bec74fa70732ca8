"""Text of unknown origin, made fit to be shown and stored. Standard library only."""

from __future__ import annotations

import re

MESSAGE_LIMIT = 4000  # characters: longer than any sentence of ours, shorter than what fills a screen
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """At most `limit` characters, with what steers a terminal or is no text at all (lone surrogates) as escapes."""
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    return _UNPRINTABLE.sub(_escaped, cut)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
