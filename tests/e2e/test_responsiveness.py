"""Typing in a large file: the answer to each keystroke comes before the next, also while a job works."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
from lsprotocol import types

from large_files import text_of
from scripted_editor import Editor, editor

pytestmark = pytest.mark.asyncio

KEYSTROKES = 60


@pytest.fixture
def large(project: Path) -> Path:
    """20,000 lines, 40 modules."""
    path = project / "large.py"
    path.write_text(text_of(20_000))
    return path


async def seconds_per_keystroke(session: Editor, uri: str) -> list[float]:
    """Each: a change in the middle of the file, then the lenses that an editor asks for after it."""
    found = []
    for _ in range(KEYSTROKES):
        started = time.perf_counter()
        session.insert(uri, "helper_1001(", "x")
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        lenses = await session.client.text_document_code_lens_async(params)
        found.append(time.perf_counter() - started)
        assert len(lenses or ()) >= 40
    return found


async def test_a_keystroke_in_a_large_file_is_answered_at_once(project, large):
    async with editor(project, options={"trusted": True, "device": "none"}) as session:
        uri = session.open(large)
        assert len(await session.lenses(uri)) == 40
        typed = session.open(project / "new_gelu.py")
        assert await session.run("generate", typed, "NewGELU")
        times = sorted(await seconds_per_keystroke(session, uri))
    print(f"keystroke to lenses: median {statistics.median(times) * 1e3:.1f} ms, worst {times[-1] * 1e3:.1f} ms")
    assert statistics.median(times) < 0.050
