"""Two kernels of one file on offer: what is decided on one leaves the other as it is."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from editor_machine import run_sessions
from scripted_editor import Editor, editor
from two_kernels import PAIR

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
DECIDE = ["compiled, not validated", "Review", "Accept", "Reject"]
TESTS = Path(__file__).parents[1]


async def opened(session: Editor, pair: Path) -> str:
    session.answers = {"never run": "Accept"}
    uri = session.open(pair)
    for name in ("First", "Second"):
        await session.state("compiled", qualname=name)
    return uri


@pytest.mark.asyncio
async def test_accepting_one_kernel_keeps_the_other_on_offer_in_its_place(pair):
    async with editor(pair.parent, options=TRUSTED) as session:
        uri = await opened(session, pair)
        assert (await session.run("accept", uri, "First") or {})["state"] == "accepted"
        assert await session.lenses(uri) == ["CuTe kernel", "Remove", *DECIDE]
        assert (await session.run("accept", uri, "Second") or {})["state"] == "accepted"
        text = session.documents[uri].text
        for name in ("first", "second"):
            body = text.partition(f"class {name.title()}(")[2]
            assert re.match(rf"[^\n]*\n    def forward[^\n]*\n        if {name}_cute.supports\(self, x\):", body)


@pytest.mark.asyncio
async def test_rejecting_one_kernel_leaves_the_accepted_one(pair):
    async with editor(pair.parent, options=TRUSTED) as session:
        uri = await opened(session, pair)
        assert await session.run("accept", uri, "Second")
        text = session.documents[uri].text
        assert await session.run("reject", uri, "First")
        assert session.documents[uri].text == text
        assert await session.lenses(uri) == ["Generate CuTe kernel", "CuTe kernel", "Remove"]
        assert await session.run("remove", uri, "Second"), session.said()
        assert session.documents[uri].text == PAIR


def test_the_page_of_complaints_names_tests_that_exist():
    page = (TESTS.parent / "docs" / "editors.md").read_text()
    named = re.findall(r"^\|[^|]+\|[^|]+\| `(test_\w+)` \|$", page, flags=re.MULTILINE)
    assert len(set(named)) >= 25
    files = [*(TESTS / "e2e").glob("test_*.py"), *(TESTS / "server").glob("test_*.py")]
    defined = set(re.findall(r"^(?:async )?def (test_\w+)\(", "".join(map(Path.read_text, files)), flags=re.MULTILINE))
    assert set(named) <= defined


@pytest.mark.timeout(600)
def test_random_sessions_lose_no_edit_and_misplace_no_kernel(pair_jobs, monkeypatch):
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # a shell script is no Python to keep in one
    before = time.monotonic()
    ran = run_sessions(2000, 6, *pair_jobs)
    print(f"{ran.steps} steps in {time.monotonic() - before:.0f} s: {dict(ran.done)}")
    assert ran.steps >= 2000
    assert ran.done["on offer"] > 50
    assert min(ran.done[each] for each in ("accept", "reject", "remove", "review", "generate", "cancel", "pause")) > 0
