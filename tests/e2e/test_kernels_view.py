"""What an editor's view of all kernels, and its review side by side, are made of."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from scripted_editor import Editor, editor, plain
from two_kernels import PAIR

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
CLASS = "NewGELU"


async def asked(session: Editor, method: str, **params: Any) -> Any:
    return plain(await session.client.protocol.send_request_async(f"cutesmith/{method}", params))


async def modules(session: Editor) -> list[dict[str, Any]]:
    return (await asked(session, "modules"))["modules"]


async def test_a_file_s_modules_are_listed_before_anything_became_of_them(tmp_path: Path):
    path = tmp_path / "pair.py"
    path.write_text(PAIR)
    async with editor(tmp_path, options=TRUSTED) as session:
        session.open(path)
        found = await asked(session, "modules")
        assert [(each["class"], each["state"], each["candidates"]) for each in found["modules"]] == [
            ("First", "idle", []),
            ("Second", "idle", []),
        ]
        lines = PAIR.splitlines()
        assert ["class First" in lines[found["modules"][0]["line"] - 1], found["device"], found["dollars"]] == [
            True,
            None,
            0.0,
        ]


async def test_candidates_proposal_and_lines_follow_a_kernel_from_offer_to_accept(offered: Path):
    path = offered / "new_gelu.py"
    before = path.read_text()
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = session.open(path)
        await session.state("compiled")
        (module,) = await modules(session)
        assert module["message"] == "compiled, not validated"
        (best,) = [each for each in module["candidates"] if each["isBest"]]
        assert (best["ok"], best["origin"], best["isAccepted"]) == (None, "recipe", False)
        proposal = await asked(session, "proposal", uri=uri, **{"class": CLASS})
        assert proposal["candidate"] == best["id"]
        await session.run("accept", uri, CLASS)
        await session.state("accepted")
        assert session.documents[uri].text == proposal["after"] != before
        assert (offered / "new_gelu_cute.py").read_text() == proposal["kernel"]["source"]
        (module,) = await modules(session)
        text = session.documents[uri].text.splitlines()
        hunks = [text[line - 1].strip() for line in module["kernelLines"]]
        assert [hunk.split(" ")[0] for hunk in hunks] == ["import", "if", "return"]
        assert [each["isAccepted"] for each in module["candidates"]].count(True) == 1
        assert await asked(session, "proposal", uri=uri, **{"class": CLASS}) is None


async def test_a_running_job_s_candidates_are_listed_while_it_runs(project: Path):
    async with editor(project, options=TRUSTED) as session, asyncio.timeout(240):
        uri = session.open(project / "new_gelu.py")
        await session.run("generate", uri, CLASS)
        (module,) = await modules(session)
        while not module["candidates"]:
            assert module["state"] == "running"
            await asyncio.sleep(0.02)
            (module,) = await modules(session)
        assert (module["state"], module["candidates"][0]["origin"]) == ("running", "recipe")
        await session.run("cancel", uri, CLASS)


@pytest.mark.parametrize("params", [{}, {"uri": 3, "class": "A"}, {"uri": "untitled:a", "class": "A"}, {"class": "A"}])
async def test_a_proposal_of_nothing_is_an_error_with_a_sentence(tmp_path: Path, params: dict[str, Any]):
    async with editor(tmp_path, options=TRUSTED) as session:
        with pytest.raises(Exception, match=r"names a class|no file on disk"):
            await asked(session, "proposal", **params)
        assert await modules(session) == []
