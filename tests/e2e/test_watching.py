"""Classes on watch: a save proves their kernels again and, if asked, has new ones made; within bounds, with trust."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scripted_editor import Editor, editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
CLASS = "NewGELU"


async def nothing_runs(session: Editor) -> bool:
    """Half a second after a save."""
    await asyncio.sleep(0.5)
    return "running" not in {each["state"] for each in await session.jobs()}


async def test_a_save_validates_the_kernel_of_a_marked_class_again_and_of_no_other(offered):
    path: Path = offered / "new_gelu.py"
    async with editor(offered, options=TRUSTED | {"watch": "marked"}) as session:
        uri = session.open(path)
        await session.state("compiled")
        assert (await session.lenses(uri))[-1] == "Watch"
        session.type(uri, "        inner =", "        half = 0.5\n        inner =")
        session.type(uri, "0.5 * x", "half * x")
        session.save(uri)
        await session.state("stale")
        assert await nothing_runs(session)
        assert await session.run("watch", uri, CLASS)
        assert (await session.lenses(uri))[-1] == "Watched: stop"
        session.insert(uri, "import math", "# typed, not saved\n")
        assert await nothing_runs(session)
        session.save(uri)
        assert (await session.state("running"))["class"] == CLASS
        assert (await session.state("compiled", "failed"))["state"] == "compiled"
        assert (session.questions, session.said(), session.edits) == ([], [], [])
        assert await session.run("unwatch", uri, CLASS)
        assert (await session.lenses(uri))[-1] == "Watch"


async def test_nothing_is_watched_by_default_nor_without_trust(offered):
    for options in ({"trusted": True, "device": "none"}, {"trusted": False, "watch": "all"}, {"watch": "all"}):
        async with editor(offered, options=options) as session:
            uri = session.open(offered / "new_gelu.py")
            await session.state("compiled", "stale")
            session.insert(uri, "        inner =", "        x = x\n")
            session.save(uri)
            await session.state("stale")
            assert await nothing_runs(session)
            assert (session.questions, session.said()) == ([], [])


async def test_a_marked_class_gets_a_kernel_within_the_minutes_of_an_hour(project, slow):
    options = {"trusted": True, "device": "none", "watch": "marked", "watchRegenerates": True, "watchMinutes": 0.02}
    async with editor(project, options=options) as session:
        uri = session.open(slow)
        assert await session.run("watch", uri, "Slow")
        session.save(uri)
        await session.state("running", qualname="Slow")
        await session.state("cancelled", qualname="Slow", timeout_s=60.0)  # its 1.2 seconds are over
        session.type(
            uri,
            "class Slow(nn.Module):\n    def forward(self, x):\n        return x",
            "class Slow(nn.Module):\n    def forward(self, x):\n        return -x",
        )
        session.save(uri)
        assert await nothing_runs(session)
        assert session.said() == []
