"""The editor's side of a kernel that the emulated device proved: real server, agent and worker over stdio."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripted_editor import editor

EXAMPLE = Path(__file__).parents[2] / "examples" / "new_gelu.py"
OPTIONS = {"trusted": True, "archs": ["sm_90a"], "device": "emulated"}


@pytest.mark.asyncio
async def test_the_lens_says_what_was_shown_and_accepting_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    shutil.copy(EXAMPLE, project)
    async with editor(project, options=OPTIONS) as session:
        uri = session.open(project / "new_gelu.py")
        assert await session.run("generate", uri, "NewGELU")
        ended = await session.state("ready", "compiled", "failed")
        assert ended["state"] == "ready", ended
        await session.until(lambda: session.lens_refreshes)
        assert await session.lenses(uri) == ["right on the emulated device, not timed", "Review", "Accept", "Reject"]
        hover = await session.hover(uri, "NewGELU(")
        assert hover is not None
        assert "Ran on: the emulated device." in hover
        accepted = await session.run("accept", uri, "NewGELU")
        assert accepted is not None, session.said()
        assert accepted["state"] == "accepted"
        assert session.questions == []
