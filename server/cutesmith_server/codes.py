"""Where a diagnostic's code is explained: a section of `docs/codes.md`, which lies beside us when installed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_SECTION = re.compile(r"^### ([a-z-]+)$", re.MULTILINE)


@cache
def page() -> Path | None:
    """The page; None in an installation without it."""
    here = Path(__file__)
    return next(
        (each for each in (here.with_name("codes.md"), here.parents[2] / "docs" / "codes.md") if each.exists()), None
    )


@cache
def explained() -> frozenset[str]:
    """The codes that have a section."""
    found = page()
    return frozenset(_SECTION.findall(found.read_text(encoding="utf-8"))) if found else frozenset()


def link(code: str) -> str | None:
    """The section's URI."""
    found = page()
    return f"{found.as_uri()}#{code}" if found is not None and code in explained() else None
