"""Every code of a finding of the evaluator's is explained on one of the two pages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MADE = (  # how the sources name a finding's code
    r'Finding\(\s*"([a-z0-9-]+)"',
    r'\b(?:report|refusal|user_code|guarded|Ban)\(\s*"([a-z0-9-]+)"',
    r'^[A-Z_]+ = "([a-z]+(?:-[a-z0-9]+)+)"',
)


def made() -> set[str]:
    sources = [path.read_text() for path in (ROOT / "evaluator").rglob("*.py")]
    return {code for text in sources for pattern in _MADE for code in re.findall(pattern, text, re.MULTILINE)}


def test_every_code_is_explained():
    page, codes = (ROOT / "docs" / "evaluator.md").read_text(), (ROOT / "docs" / "codes.md").read_text()
    explained = set(re.findall(r"^### ([a-z0-9-]+)$", codes, re.MULTILINE)) | set(re.findall(r"`([a-z0-9-]+)`", page))
    found = made()
    assert len(found) > 100
    assert found - explained == set()
