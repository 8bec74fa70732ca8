"""The parts of pages of docs/ that are written from results files: each between two comments with its name."""

from __future__ import annotations

import re
from pathlib import Path


def put(page: Path, **parts: str) -> None:
    """Replaces what stands between `<!-- name -->` and `<!-- /name -->` in the page, for each part."""
    text = page.read_text()
    for name, content in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)"
        text, count = re.subn(pattern, lambda match: f"{match[1]}{content}{match[2]}", text, flags=re.DOTALL)  # noqa: B023
        if count != 1:
            raise SystemExit(f"{page} must have the markers <!-- {name} --> and <!-- /{name} --> once; found {count}.")
    page.write_text(text)
