"""An editor's user who asks for a model is asked once whether code may go there, and is told what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import model_kernels as kernels
from model_rig import KEY
from scripted_editor import editor
from scripted_messages import Fail, ScriptedMessages

pytestmark = pytest.mark.asyncio


async def test_consent_is_asked_for_in_the_editor(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "flip.py"
    file.write_text(kernels.MODULE)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with ScriptedMessages([Fail(401, "authentication_error", "invalid x-api-key")]) as endpoint:
        monkeypatch.setenv("CUTESMITH_BASE_URL", endpoint.url)
        async with editor(project, options={"trusted": True, "device": "none", "archs": ["sm_90a"]}) as session:
            uri = session.open(file)
            offers = [action["title"] for action in await session.actions(uri, "Flip(nn")]
            assert "Ask a language model for a CuTe kernel for Flip" in offers
            session.answers = {"Ask claude-": None}
            await session.run("improve", uri, "Flip")
            await session.until(lambda: session.questions)
            assert "for kernels of this workspace? Sent are" in session.questions[0]
            assert (await session.state("failed"))["message"].startswith("Nothing was sent")
            assert endpoint.requests == []
            session.answers = {"Ask claude-": "Allow"}
            await session.run("improve", uri, "Flip")
            await session.until(lambda: "401" in session.states[-1]["message"], timeout_s=120.0)
            assert "invalid x-api-key" in session.states[-1]["message"]
            assert len(session.questions) == 2
            assert KEY not in str(session.states) + str(session.said())
