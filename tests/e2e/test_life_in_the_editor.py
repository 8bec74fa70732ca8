"""What the editor shows of captured runs, and of an accepted kernel that was proved with something else."""

from __future__ import annotations

import json
import sqlite3

import pytest

from command_line import cutesmith
from cutesmith_agent.store.captures import Capture, CapturedCall
from cutesmith_agent.store.opening import open_store
from scripted_editor import editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
SPEC = {"tensor": {"dtype": "float32", "shape": [4, 8], "strides": [8, 1]}}
CALL = json.dumps({"init": None, "args": [SPEC], "kwargs": {}, "dtype": None})


async def test_captured_signatures_are_on_the_lens_and_in_the_hover_once_the_file_is_saved(project):
    async with editor(project, options=TRUSTED) as session:
        uri = session.open(project / "new_gelu.py")
        assert (await session.lenses(uri))[0] == "Generate CuTe kernel"
        with open_store(project).store as store:
            store.captures.put([Capture(str(project / "new_gelu.py"), "NewGELU", (CapturedCall(CALL, 9, 9),))])
        session.save(uri)
        await session.until(lambda: session.lens_refreshes)
        assert await session.lenses(uri) == ["Generate CuTe kernel · captured: 1 signature"]
        hover = await session.hover(uri, "NewGELU")
        assert "Captured: 1 signature in 9 calls, all in training:\n- 9 × (4, 8) float32" in hover


async def test_an_accepted_kernel_proved_with_another_torch_is_marked(offered):
    assert cutesmith("accept", offered / "new_gelu.py", "--yes").status == 0
    with sqlite3.connect(offered / ".cutesmith" / "store.sqlite") as store:
        for row, text in store.execute("SELECT rowid, environment FROM candidates").fetchall():
            changed = json.dumps(json.loads(text) | {"torch": "2.0.0"}, sort_keys=True)
            store.execute("UPDATE candidates SET environment = ? WHERE rowid = ?", (changed, row))
    async with editor(offered, options=TRUSTED) as session:
        uri = session.open(offered / "new_gelu.py")
        (diagnostic,) = await session.until(lambda: session.diagnostics(uri))
        assert (diagnostic.code, "(was 2.0.0)" in diagnostic.message) == ("kernel-moved", True)
        lenses = await session.lenses(uri)
        assert lenses[:2] == ["CuTe kernel (proved with other versions or another GPU)", "Validate again"]
