"""What pictures of results have in common: text of SVG."""

from __future__ import annotations

import html


def text(across: float, down: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{across:.1f}" y="{down:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'
