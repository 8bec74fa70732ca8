"""Every editor's capabilities, and files as they are found in the wild, lead to the same files on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from accepted_module import check_accepted
from scripted_editor import BARE, EGLOT, EMACS, HELIX, NEOVIM, VS_CODE, Editor, changed, editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
CLASS = "NewGELU"


async def opened(session: Editor, path: Path) -> str:
    """The file open, with the kernel that its project's store offers. Returns its URI."""
    uri = session.open(path)
    await session.state("compiled")
    return uri


@pytest.mark.parametrize(
    "capabilities",
    [
        pytest.param(VS_CODE, id="vscode"),
        pytest.param(NEOVIM, id="neovim"),
        pytest.param(HELIX, id="helix"),
        pytest.param(EGLOT, id="eglot"),
        pytest.param(EMACS, id="emacs"),
        pytest.param(BARE, id="bare"),
        pytest.param(changed(VS_CODE, workspace__workspaceEdit__resourceOperations=["rename"]), id="no-file-creation"),
    ],
)
async def test_every_editor_gets_the_same_files(offered, capabilities):
    path, original = offered / "new_gelu.py", (offered / "new_gelu.py").read_text()
    async with editor(offered, options=TRUSTED, capabilities=capabilities) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, path)
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted", session.said()
        (edit,) = session.edits
        versions = [
            step.text_document.version
            for step in edit.edit.document_changes or ()
            if isinstance(step, types.TextDocumentEdit) and step.text_document.uri == uri
        ]
        assert versions in ([], [1])
        session.save(uri)
        check_accepted(offered, original, path)
        assert await session.run("remove", uri, CLASS)
        assert session.documents[uri].text == original
        assert not (offered / "new_gelu_cute.py").exists()


@pytest.mark.parametrize(
    "capabilities",
    [pytest.param(VS_CODE, id="utf-16"), pytest.param(NEOVIM, id="utf-8"), pytest.param(EMACS, id="utf-32")],
)
async def test_crlf_tabs_and_text_beyond_ascii_are_kept(offered, capabilities):
    path = offered / "new_gelu.py"
    text = path.read_text().replace("    ", "\t").replace('"""GELU', '"""😀 GELU').replace("\n", "\r\n")
    path.write_bytes(text.encode())
    async with editor(offered, options=TRUSTED, capabilities=capabilities) as session:
        session.answers = {"never run": "Accept"}
        uri = await opened(session, path)
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"
        accepted = session.documents[uri].text
        assert accepted.count("\n") == accepted.count("\r\n")
        assert "\t\tif new_gelu_cute.supports(self, x):\r\n\t\t\treturn new_gelu_cute" in accepted
        assert await session.run("remove", uri, CLASS)
        assert session.documents[uri].text == text


async def test_an_editor_of_plain_changes_gets_the_hunks_where_the_kernels_file_is_there_already(offered):
    plain_edits = changed(VS_CODE, workspace__workspaceEdit=None)
    async with editor(offered, options=TRUSTED, capabilities=plain_edits) as session:
        session.answers = {"never run": "Accept"}
        uri = session.open(offered / "new_gelu.py")
        await session.state("compiled")
        assert await session.run("acceptFile", uri, "NewGELU")
        assert (await session.run("accept", uri, "NewGELU") or {})["state"] == "accepted"
        assert session.edits[-1].edit.document_changes is None
        assert session.documents[uri].text.count("new_gelu_cute") == 3


async def test_an_editor_that_shows_what_changes_are_for_is_told_and_asks_only_when_it_is_to(offered):
    annotated = changed(VS_CODE, workspace__workspaceEdit__changeAnnotationSupport={})
    for confirms in (False, True):
        async with editor(offered, options=TRUSTED | {"confirmEdits": confirms}, capabilities=annotated) as session:
            session.answers = {"never run": "Accept"}
            uri = session.open(offered / "new_gelu.py")
            await session.state("compiled")
            assert (await session.run("accept", uri, "NewGELU") or {})["state"] == "accepted"
            edit = session.edits[-1].edit
            known = edit.change_annotations or {}
            assert {each.needs_confirmation for each in known.values()} == {confirms}
            used = [
                each.annotation_id for step in edit.document_changes or () for each in getattr(step, "edits", [step])
            ]
            assert [known[each].label for each in used] == [
                "The kernel's file",
                "The kernel's file",
                "Import the kernel's module",
                "Hand over to the kernel",
            ]
            assert await session.run("remove", uri, "NewGELU")
            edit = session.edits[-1].edit
            used = [
                each.annotation_id for step in edit.document_changes or () for each in getattr(step, "edits", [step])
            ]
            assert {(edit.change_annotations or {})[each].label for each in used} == {"Take the kernel out"}
