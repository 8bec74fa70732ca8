"""Allowing a class lowered precision from the editor: the project's file says it, and a job begins that may use it."""

from __future__ import annotations

import tomllib

import pytest

from scripted_editor import editor

pytestmark = pytest.mark.asyncio


async def test_the_quick_fix_writes_the_projects_file_and_starts_the_job(project, slow):
    path = project / "pyproject.toml"
    path.write_text('# ours\n[tool.cutesmith]\ndevice = "none"\n')
    async with editor(project, options={"trusted": True}) as session:
        uri = session.open(slow)
        assert (await session.run("allowLowered", uri, "Slow") or {})["state"] == "running"
        assert "allows Slow a kernel of lowered precision" in session.said()[-1]
        assert await session.run("cancel", uri, "Slow")
        await session.state("cancelled", qualname="Slow", timeout_s=15.0)
    text = path.read_text()
    assert tomllib.loads(text)["tool"]["cutesmith"] == {"device": "none", "allow_lowered_precision": ["Slow"]}
    assert text.startswith("# ours\n")


async def test_a_projects_file_that_is_no_toml_is_left_alone(project, slow):
    path = project / "pyproject.toml"
    path.write_text("[tool.cutesmith")
    async with editor(project, options={"trusted": True, "device": "none"}) as session:
        uri = session.open(slow)
        assert await session.run("allowLowered", uri, "Slow") is None
        assert "nothing was allowed" in session.said()[-1]
        assert {each["state"] for each in await session.jobs()} <= {"idle"}
    assert path.read_text() == "[tool.cutesmith"
