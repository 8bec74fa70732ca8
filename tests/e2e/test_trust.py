"""Nothing of the user's runs before the user, or the editor's own trust, has said so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripted_editor import BARE, editor

pytestmark = pytest.mark.asyncio

LEAVES_A_TRACE = """\
from pathlib import Path

from torch import nn

Path(__file__).with_name("ran").touch()


class Traced(nn.Module):
    def forward(self, x):
        return x
"""


@pytest.fixture
def traced(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # it could not leave its trace
    path = project / "traced.py"
    path.write_text(LEAVES_A_TRACE)
    return path


async def test_opening_a_file_runs_nothing_and_writes_nothing(project, traced, state_folder):
    async with editor(project, options={"trusted": True}) as session:
        uri = session.open(traced)
        assert await session.lenses(uri) == ["Generate CuTe kernel"]
        await session.hover(uri, "Traced")
        await session.actions(uri, "Traced")
    assert sorted(path.name for path in project.iterdir()) == ["new_gelu.py", "pyproject.toml", "traced.py"]
    assert not state_folder.exists()


@pytest.mark.parametrize("answer", [None, "Don't trust"])
async def test_without_a_yes_nothing_runs(project, traced, answer, state_folder):
    async with editor(project) as session:
        session.answers = {"Trust this folder?": answer}
        uri = session.open(traced)
        assert await session.run("generate", uri, "Traced") is None
        (question,) = session.questions
        assert f"runs the code of {project}" in question
        assert "not trusted" in session.said()[-1]
        assert await session.lenses(uri) == ["Generate CuTe kernel"]
    assert not (project / "ran").exists()
    assert not (project / ".cutesmith").exists()
    assert not state_folder.exists()


async def test_a_yes_is_remembered_for_the_folder(project, traced, state_folder):
    async with editor(project) as session:
        session.answers = {"Trust this folder?": "Trust"}
        uri = session.open(traced)
        assert await session.run("generate", uri, "Traced")
        assert (await session.state("failed"))["message"]
    assert (project / "ran").exists()
    assert json.loads((state_folder / "cutesmith" / "trust.json").read_text()) == {"folders": [str(project)]}
    async with editor(project) as session:
        assert await session.run("generate", session.open(traced), "Traced")
        assert session.questions == []


async def test_an_editor_that_does_not_trust_the_folder_is_believed(project, traced):
    async with editor(project, options={"trusted": False}) as session:
        session.answers = {"Trust": "Trust"}
        uri = session.open(traced)
        assert await session.run("generate", uri, "Traced") is None
        assert await session.run("check", uri, "Traced", candidate=str(traced)) is None
        assert session.questions == []
        assert "not trusted" in session.said()[-1]
    assert not (project / "ran").exists()


async def test_an_editor_that_cannot_ask_gets_a_no(project, traced):
    async with editor(project, capabilities=BARE, answers_questions=False) as session:
        assert await session.run("generate", session.open(traced), "Traced") is None
        assert "not trusted" in session.said()[-1]
    assert not (project / "ran").exists()


async def test_the_workspaces_settings_cannot_grant_trust(project, traced):
    async with editor(project, options={"trusted": False}) as session:
        uri = session.open(traced)
        session.configure({"trusted": True, "device": "none"})
        assert await session.run("generate", uri, "Traced") is None
    assert not (project / "ran").exists()
