"""A language model of the editor's: asked through the server, after consent and without a key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

import model_kernels as kernels
from cutesmith_agent.store.opening import open_store
from scripted_editor import VS_CODE, Editor, changed, editor, plain

pytestmark = pytest.mark.asyncio

OPTIONS = {"trusted": True, "device": "none", "archs": ["sm_90a"], "modelProvider": "editor"}
NAME = "copilot/gpt-5"
WITH_MODELS = changed(VS_CODE, experimental={"languageModel": True})


class Models:
    """The editor's side: `name` says which model it has, `answers` are what that says, `asked` what it was asked."""

    def __init__(self, session: Editor, *answers: dict[str, Any], name: Callable[[], Awaitable[Any]]) -> None:
        self.name, self.answers, self.named, self.cancelled = name, list(answers), 0, 0
        self.asked: list[dict[str, Any]] = []

        @session.client.feature("cutesmith/languageModel")
        async def named(params: Any) -> Any:
            self.named += 1
            try:
                return await self.name()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise

        @session.client.feature("cutesmith/chat")
        def chat(params: Any) -> Any:
            self.asked.append(plain(params))
            return self.answers.pop(0)


async def none() -> None:
    raise JsonRpcException("Sign in to\n GitHub Copilot.")


async def named() -> dict[str, str]:
    return {"name": NAME, "provider": "copilot"}


def says(name: str, **input: str) -> dict[str, Any]:
    calls = [{"name": name, "input": input | {"class": "a name no tuple can have", "a b": ""}}]
    return {"text": "", "calls": calls, "usage": {"input": 9000, "output": 3000}, "problem": None}


@pytest.fixture
def flip(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that no recipe covers; there is no key."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (project / "flip.py").write_text(kernels.MODULE)
    return project / "flip.py"


async def test_it_is_asked_after_consent_and_its_kernel_is_offered(flip: Path) -> None:
    async with editor(flip.parent, options=OPTIONS, capabilities=WITH_MODELS) as session:
        answer = says("submit_kernel", summary="a first kernel", source=kernels.flip())
        models = Models(session, answer, name=asyncio.Event().wait)
        uri = session.open(flip)
        session.answers = {f"Ask {NAME} at the editor's provider copilot": "Allow"}
        await session.run("improve", uri, "Flip")
        await session.until(lambda: models.named)
        await session.run("cancel", uri, "Flip")
        await session.until(lambda: models.cancelled)  # what the editor was asked is cancelled, too
        await session.state("cancelled")
        models.name = named
        await session.run("improve", uri, "Flip")
        assert (await session.state("compiled"))["best"]["origin"] == "llm"
        assert len(session.questions) == 1
        assert [each["model"] for each in models.asked] == [NAME]
        assert "class Flip" in models.asked[0]["user"]
    with open_store(flip.parent).store as store:
        job = store.latest(str(flip), "Flip")
        assert job is not None
        used = job.report["model"]
    assert (used["name"], used["dollars"], used["output"]) == (NAME, None, 3000)


async def test_an_editor_that_does_not_offer_one_is_not_asked(flip: Path) -> None:
    async with editor(flip.parent, options=OPTIONS) as session:
        models = Models(session, name=named)
        await session.run("improve", session.open(flip), "Flip")
        failed = await session.state("failed")
        assert failed["message"] == (
            'No model was asked: This editor offers CuteSmith no language model: set modelProvider to "anthropic".'
        )
        assert (models.asked, session.questions) == ([], [])


async def test_why_an_editor_has_none_is_said_in_its_words(flip: Path) -> None:
    async with editor(flip.parent, options=OPTIONS, capabilities=WITH_MODELS) as session:
        Models(session, name=none)
        await session.run("improve", session.open(flip), "Flip")
        assert (await session.state("failed"))["message"] == "No model was asked: Sign in to GitHub Copilot."
        assert session.questions == []
