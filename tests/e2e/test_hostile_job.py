"""Fifty hostile candidates through one job of the editor's server: verdicts, store, processes, answers meanwhile."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.types import Candidate
from hostile_candidates import QUALNAME, Hostile, hostile_candidates, write_project
from scripted_editor import Editor, editor

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(1200)]

OPTIONS = {"trusted": True, "device": "emulated", "archs": ["sm_90a"]}
ANSWERED_S = 1.0  # an answer that takes longer is felt
USUALLY_S = 0.1


@pytest.fixture
def scratch(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's processes put their files, by which they are known. Hangs are given little time."""
    folder = project.parent / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("CUTESMITH_DEADLINE_S", "3")
    monkeypatch.setenv("CUTESMITH_MEMORY_GB", "3")
    return folder


async def answers_while_it_runs(session: Editor, uri: str) -> list[float]:
    """Seconds that the server took for a hover and the lenses, again and again until the job ends."""
    found = []
    while session.states[-1]["state"] == "running":
        started = time.perf_counter()
        assert await session.hover(uri, f"{QUALNAME}(")
        assert await session.lenses(uri)
        found.append(time.perf_counter() - started)
        await asyncio.sleep(0.1)
    return found


def strays(scratch: Path) -> list[str]:
    """Processes with this folder in their environment that run on, the server's own aside."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment, state = (folder / "environ").read_bytes(), (folder / "stat").read_text().rpartition(")")[2]
        except OSError:
            continue
        if f"CUTESMITH_SCRATCH={scratch}".encode() in environment and state.split()[0] not in "ZX":
            found.append((folder / "cmdline").read_bytes().decode(errors="replace"))
    return found


def mistaken(hostile: Hostile, verdict: Candidate) -> str | None:
    """In which way a verdict is not the expected one."""
    errors = [each for each in verdict.findings if each.severity == "error" or verdict.ok is None]
    if not hostile.kinds:
        late = verdict.ok is None and {each.kind for each in errors} >= {"out-of-time"}
        return None if verdict.ok or late else f"{hostile.name} is not right: {verdict.findings}"
    if verdict.ok is True or not errors or errors[0].kind not in hostile.kinds or hostile.says not in errors[0].message:
        return f"{hostile.name}: {verdict.ok} {verdict.findings}"
    return None if len(errors[0].message) < 5000 and errors[0].message.isprintable() else f"{hostile.name}: no sentence"


def kept(project: Path) -> tuple[list[Candidate], dict[str, Any]]:
    """The verdicts and the report of the project's one check."""
    with open_store(project).store as store:
        done = store.latest(str(project / "scaled.py"), QUALNAME, kind="check")
        assert done is not None
        verdicts = store.candidates(done.id)
        told = {each.candidate for each in store.transitions(done.id)}
        assert told >= {each.id for each in verdicts}
        return list(verdicts), done.report


async def test_fifty_hostile_candidates_in_a_row(project: Path, scratch: Path):
    task, paths = write_project(project)
    hostile = {each.name: each for each in hostile_candidates()}
    assert len(hostile) >= 50
    begun = time.monotonic()
    async with editor(project, options=OPTIONS) as session:
        uri = session.open(task)
        assert await session.run("check", uri, QUALNAME, candidate=[str(path) for path in paths])  # type: ignore[arg-type]
        times = sorted(await answers_while_it_runs(session, uri))
        assert session.states[-1]["state"] in ("ready", "compiled")  # some are right, where there is time to see it
        assert strays(scratch) == []
        passed, (verdicts, report) = time.monotonic() - begun, kept(project)
        assert await session.run("check", uri, QUALNAME, candidate=str(paths[-3]))  # the server goes on
        assert (await session.state("failed", timeout_s=120.0))["message"].endswith("correct it.")
    print(f"{passed:.0f} s; a hover and the lenses: median {statistics.median(times):.3f} s, worst {times[-1]:.3f} s")
    assert list(scratch.glob("cutesmith-*")) == []
    by_name = {Path(each.path or "").stem.removesuffix("_cute"): each for each in verdicts}
    assert set(by_name) == set(hostile)
    assert [found for name in hostile if (found := mistaken(hostile[name], by_name[name]))] == []
    assert len(report["candidates"]) == len(hostile)
    assert times[-1] < ANSWERED_S
    assert statistics.median(times) < USUALLY_S
