"""Accepting, rejecting and removing kernels in an editor."""

from __future__ import annotations

from pathlib import Path

import pytest

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
        assert await session.lenses(uri) == ["Generate CuTe kernel"]


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
        assert await session.lenses(uri) == ["CuTe kernel (edited since it was proved)", "Remove"]
        assert await session.run("remove", uri, CLASS)
        assert kernel.read_text().endswith("# mine\n")


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


async def test_a_proposal_is_used_once(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("accept", uri, CLASS)
        text = session.documents[uri].text
        assert await session.run("accept", uri, CLASS) is None
        assert session.documents[uri].text == text
        assert "generate one first" in session.said()[-1]


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
        assert await session.lenses(uri) == ["Generate CuTe kernel"]
