"""Accepting, rejecting and removing kernels in an editor."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from lsprotocol import types

from cutesmith_server.records import read_records
from scripted_editor import Editor, editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
CLASS = "NewGELU"


async def opened(session: Editor, path: Path) -> str:
    """The file open, with the kernel that its project's store offers. Returns its URI."""
    uri = session.open(path)
    await session.state("compiled")
    return uri


async def test_the_accepted_kernel_comes_out_again_byte_for_byte(offered):
    path, original = offered / "new_gelu.py", (offered / "new_gelu.py").read_text()
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, path)
        assert await session.run("accept", uri, CLASS)
        removed = await session.run("remove", uri, CLASS)
        assert removed is not None, session.said()
        assert session.documents[uri].text == original
        assert not (offered / "new_gelu_cute.py").exists()
        assert (await session.lenses(uri))[1:] == ["Review", "Accept", "Reject"]  # without another job


async def test_a_kernel_that_was_validated_and_removed_is_on_offer_again(offered):
    path = offered / "new_gelu.py"
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, path)
        assert await session.run("accept", uri, CLASS)
        session.save(uri)
        before = len(session.states)
        await session.run("check", uri, CLASS, candidate=str(offered / "new_gelu_cute.py"))
        await session.until(lambda: any(each["state"] == "running" for each in session.states[before:]))
        await session.state("accepted", timeout_s=60)
        session.save(uri)  # the store is read again: its decision is older than the verdict
        await asyncio.sleep(1)
        assert await session.run("remove", uri, CLASS)
        session.save(uri)
        async with asyncio.timeout(10):
            while (await session.lenses(uri))[1:] != ["Review", "Accept", "Reject"]:
                await asyncio.sleep(0.05)


async def test_removing_keeps_a_kernel_file_that_another_file_uses(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("accept", uri, CLASS)
        (offered / "other.py").write_text("import new_gelu_cute\n")
        assert await session.run("remove", uri, CLASS)
        assert (offered / "new_gelu_cute.py").exists()
        assert any("stays" in said for said in session.said())


async def test_an_edited_kernel_file_loses_its_verdict_and_is_never_deleted(offered):
    kernel = offered / "new_gelu_cute.py"
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("accept", uri, CLASS)
        await session.until(lambda: not session.diagnostics(uri))
        kernel.write_text(kernel.read_text() + "# mine\n")
        session.tell_changed_on_disk(kernel)
        (diagnostic,) = await session.until(lambda: session.diagnostics(uri))
        assert diagnostic.code == "kernel-edited"
        assert "no longer that of the file" in diagnostic.message
        assert await session.lenses(uri) == ["CuTe kernel (edited since it was proved)", "Validate again", "Remove"]
        assert await session.run("remove", uri, CLASS)
        assert kernel.read_text().endswith("# mine\n")


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
async def test_what_stands_in_the_kernels_place_and_is_no_file_is_left_alone(offered, kind):
    place = offered / "new_gelu_cute.py"
    place.mkdir() if kind == "folder" else place.symlink_to(offered / "nowhere" / "x.py")
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        before = session.documents[uri].text
        for command in ("accept", "acceptFile"):
            assert await session.run(command, uri, CLASS) is None
            assert "move it away or delete it" in session.said()[-1]
        assert session.documents[uri].text == before
        assert place.is_dir() or place.is_symlink()


async def test_a_store_that_another_program_has_locked_holds_up_nobody_else(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        store = sqlite3.connect(offered / ".cutesmith" / "store.sqlite")
        store.execute("BEGIN EXCLUSIVE")
        accepting = asyncio.create_task(session.run("accept", uri, CLASS))
        await session.until(lambda: "supports" in session.documents[uri].text)
        async with asyncio.timeout(2):
            assert "CuTe kernel" in await session.lenses(uri)
        assert not accepting.done()
        store.rollback()
        store.close()
        assert (await accepting or {})["state"] == "accepted"
        decision = read_records(offered / "new_gelu.py", [CLASS])[CLASS].decision
        assert decision is not None
        assert decision.decision == "accepted"


async def test_while_the_editor_shows_the_edit_the_kernel_is_on_offer_and_not_put_in_twice(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        shown, answered = asyncio.Event(), asyncio.Event()

        async def apply_later(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            shown.set()
            await answered.wait()
            return session.on_apply_edit(params)

        session.client.protocol.fm.features.pop(types.WORKSPACE_APPLY_EDIT)
        session.client.feature(types.WORKSPACE_APPLY_EDIT)(apply_later)
        accepting = asyncio.create_task(session.run("accept", uri, CLASS))
        await shown.wait()
        assert await session.lenses(uri) == ["compiled, not validated", "Review", "Accept", "Reject"]
        for command in ("accept", "reject"):
            assert await session.run(command, uri, CLASS) is None
            assert "answer it there first" in session.said()[-1]
        answered.set()
        assert (await accepting or {})["state"] == "accepted"
        assert session.documents[uri].text.count("new_gelu_cute.supports") == 1


async def test_a_kernel_that_never_ran_is_accepted_only_after_a_yes(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        before = session.documents[uri].text
        answer = await session.run("accept", uri, CLASS)
        assert answer is not None
        assert answer["state"] == "compiled"
        assert session.documents[uri].text == before
        assert not (offered / "new_gelu_cute.py").exists()
        session.answers = {"never run": "Accept"}
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"


async def test_what_is_typed_while_the_question_stands_is_what_counts(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        session.while_asked = lambda: session.type(uri, "import math\n", "import math\nimport os\n")
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"
        compile(session.documents[uri].text, "new_gelu.py", "exec")
        assert (
            "import os\n\nimport torch\nfrom torch import nn\n\nimport new_gelu_cute\n" in session.documents[uri].text
        )


async def test_a_class_that_changes_while_the_question_stands_is_not_touched(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        session.while_asked = lambda: session.type(uri, "0.5 * x", "0.6 * x")
        assert await session.run("accept", uri, CLASS) is None
        assert "generate it again" in session.said()[-1]
        assert "new_gelu_cute" not in session.documents[uri].text
        assert not (offered / "new_gelu_cute.py").exists()


async def test_a_kernel_file_that_is_somebody_elses_is_never_overwritten(offered):
    (offered / "new_gelu_cute.py").write_text("precious = True\n")
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("accept", uri, CLASS) is None
        assert session.questions == []
        assert "new_gelu_cute.py exists" in session.said()[-1]
    assert (offered / "new_gelu_cute.py").read_text() == "precious = True\n"


async def test_the_hover_of_an_accepted_kernel_keeps_its_verdict(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("accept", uri, CLASS)
        session.save(uri)
    async with editor(offered, options=TRUSTED) as session:
        uri = session.open(offered / "new_gelu.py")
        state = await session.state("accepted")
        assert state["best"]["ok"] is None
        hover = await session.hover(uri, "NewGELU(")
        assert hover is not None
        assert "has a CuTe kernel" in hover
        assert "Ran on no device" in hover
        assert "requires grad" in hover


async def test_a_proposal_is_used_once(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("accept", uri, CLASS)
        text = session.documents[uri].text
        assert await session.run("accept", uri, CLASS) is None
        assert session.documents[uri].text == text
        assert "NewGELU has its kernel already (new_gelu_cute.py)" in session.said()[-1]


async def test_an_edit_the_editor_refuses_leaves_everything_as_it_was(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        session.refuses_edits = True
        assert await session.run("accept", uri, CLASS) is None
        assert "the user said no" in session.said()[-1]
        assert not (offered / "new_gelu_cute.py").exists()
        session.refuses_edits = False
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"


async def test_rejecting_clears_and_is_remembered(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        rejected = await session.run("reject", uri, CLASS)
        assert rejected is not None
        assert rejected["state"] == "idle"
        await session.until(lambda: not session.diagnostics(uri))
        assert await session.lenses(uri) == ["Generate CuTe kernel"]
    async with editor(offered, options=TRUSTED) as session:
        uri = session.open(offered / "new_gelu.py")
        assert await session.run("accept", uri, CLASS) is None


async def test_a_kernel_on_offer_outlives_the_editor(offered):
    async with editor(offered, options=TRUSTED) as session:
        await opened(session, offered / "new_gelu.py")
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = session.open(offered / "new_gelu.py")
        await session.state("compiled")
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"
    async with editor(offered, options=TRUSTED) as session:
        path = offered / "new_gelu.py"
        assert "new_gelu_cute" not in path.read_text()  # accepted in a buffer that was never saved
        uri = session.open(path)
        await session.state("compiled")
        assert await session.lenses(uri) == ["compiled, not validated", "Review", "Accept", "Reject"]


async def test_through_a_link_the_open_document_is_edited_and_the_kernel_lies_beside_the_file(offered):
    path, link = offered / "new_gelu.py", offered / "package" / "link.py"
    link.parent.mkdir()
    (link.parent / "__init__.py").touch()
    link.symlink_to(Path("..") / path.name)
    original = path.read_text()
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        beside, uri = session.open(path), await opened(session, link)
        assert await session.run("accept", uri, CLASS)
        assert "\nimport new_gelu_cute\n" in session.documents[uri].text
        assert session.documents[beside].text == original
        assert (offered / "new_gelu_cute.py").exists()
        assert not link.with_name("new_gelu_cute.py").exists()
        assert await session.run("remove", uri, CLASS)
        assert session.documents[uri].text == original
        assert not (offered / "new_gelu_cute.py").exists()
