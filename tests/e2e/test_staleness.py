"""Kernels whose class, or file, is not what it was when they were proved."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from command_line import cutesmith
from cutesmith_agent.imported import hashes
from scripted_editor import VS_CODE, Editor, changed, editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
CLASS = "NewGELU"


async def opened(session: Editor, path: Path) -> str:
    """The file open, with the kernel that its project's store offers. Returns its URI."""
    uri = session.open(path)
    await session.state("compiled")
    return uri


async def test_changing_the_class_makes_its_kernel_stale_and_undoing_that_makes_it_good_again(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        session.type(uri, "0.5 * x", "0.6 * x")
        stale = await session.state("stale")
        assert "has changed since" in stale["message"]
        assert await session.lenses(uri) == ["CuTe kernel out of date: validate it again", "Generate again", "Reject"]
        assert await session.run("accept", uri, CLASS) is None
        assert "generate it again" in session.said()[-1]
        session.undo(uri)
        await session.state("compiled")


async def test_a_stale_kernel_is_validated_again_and_on_offer_for_the_class_as_it_is(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        session.type(uri, "        inner =", "        # the same in other words\n        half = 0.5\n        inner =")
        session.type(uri, "0.5 * x", "half * x")
        await session.state("stale")
        await session.until(lambda: any(each.code == "kernel-stale" for each in session.diagnostics(uri)))
        fixes = [each["title"] for each in await session.actions(uri, "NewGELU(nn", ["quickfix"])]
        assert fixes == ["Validate the kernel again", "Generate the kernel again"]
        assert await session.run("revalidate", uri, CLASS), session.said()
        again = await session.state("compiled", "stale", "failed")
        assert again["state"] == "compiled", again
        assert (again["best"]["origin"], again["best"]["stage"]) == ("recipe", "compile")
    async with editor(offered, options=TRUSTED) as session:  # it is kept, for the class as it is
        session.answers = {"never run": "Accept"}
        uri = session.open(offered / "new_gelu.py")
        await session.state("stale")
        session.type(uri, "        inner =", "        # the same in other words\n        half = 0.5\n        inner =")
        session.type(uri, "0.5 * x", "half * x")
        await session.state("compiled")
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"
        assert "half * x" in session.documents[uri].text


async def test_changing_something_else_moves_the_edit_along(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        session.type(uri, "import math\n", "# 😀 a comment\n\nimport math\nimport os\n")
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"
        compile(session.documents[uri].text, "new_gelu.py", "exec")
        assert session.documents[uri].text.count("new_gelu_cute") == 3


async def test_a_file_changed_on_disk_under_the_editor_makes_its_kernel_stale(offered):
    path = offered / "new_gelu.py"
    async with editor(offered, options=TRUSTED) as session:
        await opened(session, path)
        original = path.read_text()
        path.write_text(original.replace("0.5 * x", "0.7 * x"))
        session.tell_changed_on_disk(path)
        assert "changed on disk" in (await session.state("stale"))["message"]
        path.write_text(original)
        session.tell_changed_on_disk(path)
        await session.state("compiled")


async def test_an_editor_that_does_not_watch_files_is_watched_for(offered):
    path = offered / "new_gelu.py"
    blind = changed(VS_CODE, workspace__didChangeWatchedFiles=None)
    async with editor(offered, options=TRUSTED, capabilities=blind) as session:
        await opened(session, path)
        assert session.watch_globs == []
        path.write_text(path.read_text().replace("0.5 * x", "0.7 * x"))
        assert "changed on disk" in (await session.state("stale"))["message"]


def importing(project: Path) -> Path:
    """A file that the project's kernel is said to have been proved with."""
    layers = project / "layers.py"
    layers.write_text("SLOPE = 1.702\n")
    with sqlite3.connect(project / ".cutesmith" / "store.sqlite") as store:
        store.execute("UPDATE jobs SET imported = ?", (json.dumps(hashes([str(layers)])),))
    store.close()
    return layers


async def test_a_kernel_is_doubted_while_a_file_that_its_file_imports_is_another(offered):
    layers = importing(offered)
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        layers.write_text("SLOPE = 1.0\n")
        session.tell_changed_on_disk(layers)
        assert "layers.py, which its file imports, has changed" in (await session.state("stale"))["message"]
        assert await session.run("accept", uri, CLASS) is None
        (status,) = cutesmith("status", "--json", cwd=offered).json["classes"]
        assert (status["state"], status["note"]) == ("stale", "layers.py has changed since the kernel was proved")
        assert "generate it again" in cutesmith("accept", offered / "new_gelu.py", "--yes").stderr
        layers.write_text("SLOPE = 1.702  # as it was\n")
        session.tell_changed_on_disk(layers)
        await session.state("compiled")
        session.answers = {"never run": "Accept"}
        assert await session.run("accept", uri, CLASS)
        layers.write_text("SLOPE = 1.0\n")
        session.save(session.open(layers))
        (told,) = await session.until(lambda: session.diagnostics(uri))
        assert told.code == "kernel-edited"
        assert "layers.py, which its file imports, has changed" in told.message
        assert "Validate again" in await session.lenses(uri)
        layers.write_text("SLOPE = 1.702\n")
        session.tell_changed_on_disk(layers)
        await session.until(lambda: not session.diagnostics(uri))
