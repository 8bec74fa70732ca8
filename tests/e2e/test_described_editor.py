"""In the editor a reference for a docstring is reviewed and approved, goes into the class as one edit, and can be
turned down."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_agent.store.opening import open_store
from described_rig import DESCRIBED, checks, reference
from model_rig import DEFAULT, KEY
from scripted_editor import editor
from scripted_messages import ScriptedMessages

pytestmark = pytest.mark.asyncio


async def test_a_reference_is_approved_and_a_kernel_made_against_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "flip.py"
    file.write_text(DESCRIBED)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("CUTESMITH_MODEL", DEFAULT)
    with ScriptedMessages([reference(), checks()]) as endpoint:
        monkeypatch.setenv("CUTESMITH_BASE_URL", endpoint.url)
        with open_store(project).store as store:
            store.set_consent(endpoint.url.removeprefix("http://"), granted=True)
        async with editor(project, options={"trusted": True, "device": "none", "archs": ["sm_90a"]}) as session:
            uri = session.open(file)
            await session.run("improve", uri, "Flip")
            waiting = await session.state("reference")
            assert "agrees with 2 checks" in waiting["message"]
            offers = [action["title"] for action in await session.actions(uri, "Flip(nn")]
            assert "Approve the reference for Flip and make a CuTe kernel" in offers
            assert "Reject the reference for Flip" in offers
            assert session.documents[uri].text == DESCRIBED
            await session.run("approve", uri, "Flip")
            assert "return x.flip(0)" in session.documents[uri].text
            assert session.documents[uri].version == 2
            await session.state("compiled")
        assert len(endpoint.requests) == 2, "a recipe covers what was written"


async def test_a_reference_from_before_is_shown_and_turned_down(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another server, or the command line, left it; a stale one is not written."""
    from cutesmith_agent.source.fingerprint import class_hash
    from cutesmith_agent.store.rows import JobKey

    file = project / "flip.py"
    file.write_text(DESCRIBED)
    made = {"source": "def forward(self, x):\n    return x.flip(0)\n", "patch": "", "checks": "", "agreed": ["check_a"]}
    report = {"task": {"file": str(file), "class": "Flip"}, "device": "none", "stopped": "Waits.", "reference": made}
    with open_store(project).store as store:
        job = store.begin_job(JobKey("optimize", str(file), "Flip", "k", class_hash(DESCRIBED, "Flip")), resume=False)
        store.finish_job(job, report)
    async with editor(project, options={"trusted": True, "device": "none"}) as session:
        uri = session.open(file)
        await session.state("reference")
        session.type(uri, "in reverse order", "in another order")
        await session.state("idle")
        await session.run("approve", uri, "Flip")
        assert "x.flip(0)" not in session.documents[uri].text
        session.type(uri, "in another order", "in reverse order")
        await session.state("reference")
        session.refuses_edits = True
        await session.run("approve", uri, "Flip")
        assert (await session.state("reference"))["message"] == "Waits."
        await session.run("reject", uri, "Flip")
        await session.state("idle")
    with open_store(project).store as store:
        assert [one.decision for one in store.decisions()] == ["rejected"]
