"""An editor's user who asks for a model is asked once whether code may go there; a yes starts the job again."""

from __future__ import annotations

from pathlib import Path

import pytest

import model_kernels as kernels
from cutesmith_agent.store.opening import open_store
from model_rig import DEFAULT, KEY
from scripted_editor import editor

pytestmark = pytest.mark.asyncio


async def test_consent_is_asked_for_in_the_editor(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "flip.py"
    file.write_text(kernels.MODULE)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("CUTESMITH_MODEL", DEFAULT)
    monkeypatch.setenv("CUTESMITH_BASE_URL", "http://127.0.0.1:9")
    async with editor(project, options={"trusted": True, "device": "none"}) as session:
        uri = session.open(file)
        offers = [action["title"] for action in await session.actions(uri, "Flip(nn")]
        assert "Ask a language model for a CuTe kernel for Flip" in offers
        session.answers = {"Ask claude-": None}
        await session.run("improve", uri, "Flip")
        await session.until(lambda: session.questions)
        assert f"Ask {DEFAULT} at 127.0.0.1:9 for kernels of this workspace? Sent are" in session.questions[0]
        assert (await session.state("failed"))["message"].startswith("Nothing was sent")
        session.answers = {"Ask claude-": "Allow"}
        await session.run("improve", uri, "Flip")
        await session.until(lambda: len(session.questions) == 2)
        await session.until(lambda: session.states[-1]["state"] == "running")
        await session.run("cancel", uri, "Flip")
        await session.state("cancelled")
    with open_store(project).store as store:
        assert store.consent("127.0.0.1:9") is True


async def test_models_can_be_turned_off_whatever_the_project_says(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text("[tool.cutesmith]\nask_model = true\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with editor(project, options={"trusted": True, "device": "none", "askModel": False}) as session:
        uri = session.open(project / "new_gelu.py")
        assert await session.run("improve", uri, "NewGELU") is None
        assert "cutesmith.askModel is off here" in session.said()[-1]
        assert session.questions == []
