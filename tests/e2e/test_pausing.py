"""Jobs that are put aside: paused and resumed, left by a server that ended, or stopped for one that was asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from cutesmith_agent.job import Job
from cutesmith_evaluator.processes import descendants
from cutesmith_evaluator.types import Task
from cutesmith_server.agent_process import StageReached
from cutesmith_server.devices import Devices
from cutesmith_server.jobs import Cancelled, ClassKey, JobEvent, Supervisor
from cutesmith_server.orders import Priority
from hanging_job import hanging
from scripted_editor import editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "device": "none"}


async def test_a_paused_job_frees_its_device_and_goes_on_when_it_is_resumed(project, slow):
    async with editor(project, options=TRUSTED) as session:
        started = await hanging(session, slow)
        uri = slow.as_uri()
        assert await session.run("pause", uri, "Slow")
        paused = await session.state("paused", timeout_s=15.0)
        assert "goes on from there" in paused["message"]
        assert not [pid for pid in started if Path(f"/proc/{pid}/exe").exists()]
        assert (await session.lenses(uri))[:2] == ["CuTe kernel paused: resume", "Cancel"]
        assert await session.run("pause", uri, "Slow") is None
        (slow.parent / "running").unlink()
        assert (await session.run("resume", uri, "Slow") or {})["state"] == "running"
        await session.until((slow.parent / "running").exists, 60.0)
        assert await session.run("pause", uri, "Slow")
        await session.state("paused", timeout_s=15.0)
        assert await session.run("cancel", uri, "Slow")
        assert (await session.lenses(uri))[0] == "Generate CuTe kernel"
        assert await session.run("resume", uri, "Slow") is None


async def test_a_job_that_the_servers_end_interrupted_goes_on_when_the_user_says_so(project, slow):
    async with editor(project, options=TRUSTED, ends=False) as session:
        await hanging(session, slow)
        server = session.client._server
        assert server is not None
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
    (slow.parent / "running").unlink()
    for wanted in ("resume", "cancel"):  # the second server is shut down with the job at work
        async with editor(project, options=TRUSTED) as session:
            uri = session.open(slow)
            await session.state("paused", qualname="Slow")
            server = session.client._server
            assert server is not None
            assert descendants(server.pid) == []  # opening a file runs nothing
            async with editor(project, options=TRUSTED) as second:  # what one server took up another does not
                second.open(slow)
                assert await second.lenses(uri) == ["Generate CuTe kernel"] * 3
                assert await second.jobs() == []
            assert await session.run(wanted, uri, "Slow")
            if wanted == "resume":
                await session.until((slow.parent / "running").exists, 60.0)
    async with editor(project, options=TRUSTED) as session:
        session.open(slow)
        assert await session.lenses(uri) == ["Generate CuTe kernel"] * 3  # a cancelled job does not come back


async def test_an_idle_job_gives_way_to_one_that_is_asked_for_and_goes_on_afterwards(project, slow, tmp_path):
    events: list[tuple[str, JobEvent]] = []
    jobs = Supervisor(lambda key, event: events.append((key.qualname, event)), Devices(tmp_path / "devices"))

    def stages(name: str) -> list[str]:
        return [event.stage for each, event in events if each == name and isinstance(event, StageReached)]

    async def until(condition) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.02)

    keys = {name: ClassKey(slow, name) for name in ("Slow", "Slower", "Slowest")}
    for name, priority in (("Slow", Priority.IDLE), ("Slower", Priority.ASKED)):
        jobs.submit(keys[name], _job(keys[name]), priority)
    await until(lambda: stages("Slow") and stages("Slower"))
    jobs.submit(keys["Slowest"], _job(keys["Slowest"]))
    await until(lambda: "queued" in stages("Slow") and stages("Slowest"))
    jobs.cancel(keys["Slower"])
    await until(lambda: stages("Slow")[-1] != "queued")
    await jobs.close()
    ended = [each for each, event in events if isinstance(event, Cancelled)]
    assert (ended[0], set(ended)) == ("Slower", set(keys))


def _job(key: ClassKey) -> Job:
    return Job("optimize", Task(str(key.path), key.qualname), str(key.path.parent), sys.executable, device="none")
