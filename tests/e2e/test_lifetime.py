"""Jobs end when they are cancelled and when the server does, however it does; no process and no scratch file stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from hanging_job import hanging
from scripted_editor import editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "device": "none"}


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in _status(pid)]


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "\nState:\tZ"


async def gone(pids: list[int], timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while alive(pids):
            await asyncio.sleep(0.05)


async def test_cancelling_ends_every_process_of_the_job(project, slow):
    async with editor(project, options=TRUSTED) as session:
        started = await hanging(session, slow)
        uri = slow.as_uri()
        assert await session.run("cancel", uri, "Slow")
        assert (await session.state("cancelled", timeout_s=15.0))["message"] == ""
        assert not alive(started)
        assert (await session.lenses(uri))[0] == "Generate CuTe kernel"
        assert isinstance(session.progress()[-1], types.WorkDoneProgressEnd)
        assert list((project.parent / "tmp").glob("cutesmith-*")) == []
        assert await session.run("cancel", uri, "Slow") is None


async def test_the_progress_bars_cancel_button_cancels(project, slow):
    async with editor(project, options=TRUSTED) as session:
        started = await hanging(session, slow)
        (token,) = session.client.progress_reports
        session.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        await session.state("cancelled", timeout_s=15.0)
        assert not alive(started)


async def test_shutdown_ends_every_job_before_it_answers(project, slow):
    async with editor(project, options=TRUSTED, ends=False) as session:
        started = await hanging(session, slow)
        await session.client.shutdown_async(None)
        assert not alive(started)
        session.client.exit(None)
        server = session.client._server
        assert server is not None
        assert await asyncio.wait_for(server.wait(), 5.0) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_server_that_is_killed_takes_its_jobs_along(project, slow, number):
    async with editor(project, options=TRUSTED, ends=False) as session:
        started = await hanging(session, slow)
        server = session.client._server
        assert server is not None
        os.kill(server.pid, number)
        await server.wait()
        await gone(started)


async def test_a_server_whose_stdin_ends_ends_with_its_jobs(project, slow):
    async with editor(project, options=TRUSTED, ends=False) as session:
        started = await hanging(session, slow)
        server = session.client._server
        assert server is not None
        assert server.stdin is not None
        server.stdin.close()
        assert await asyncio.wait_for(server.wait(), 15.0) == 1
        await gone(started)


async def test_a_server_whose_client_dies_ends_though_its_stdin_stays_open(project, slow):
    client = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    async with editor(project, options=TRUSTED, process_id=client.pid, ends=False) as session:
        started = await hanging(session, slow)
        server = session.client._server
        assert server is not None
        client.kill()
        client.wait()
        await asyncio.wait_for(server.wait(), 15.0)
        await gone(started)


async def test_two_jobs_run_and_others_wait(project, slow):
    async with editor(project, options=TRUSTED) as session:
        await hanging(session, slow)
        uri = slow.as_uri()
        assert await session.run("generate", uri, "Slower")
        assert await session.run("generate", uri, "Slow") is None
        assert "being made already" in session.said()[-1]
        waiting = await session.run("generate", uri, "Slowest")
        assert waiting is not None
        assert (waiting["stage"], waiting["message"]) == ("queued", "waiting for another job to end")
        assert await session.run("cancel", uri, "Slow")
        await session.until(
            lambda: ("Slowest", "propose") in {(each["class"], each["stage"]) for each in session.states}
        )
        known = await session.jobs()
        assert {each["class"] for each in known} == {"Slow", "Slower", "Slowest"}
        assert await session.run("cancel", uri, "Slowest")
        await session.state("cancelled", qualname="Slowest", timeout_s=15.0)


async def test_a_job_that_waits_is_cancelled_without_having_run(project, slow):
    async with editor(project, options=TRUSTED) as session:
        await hanging(session, slow)
        uri = slow.as_uri()
        assert await session.run("generate", uri, "Slower")
        assert await session.run("generate", uri, "Slowest")
        assert await session.run("cancel", uri, "Slowest")
        await session.state("cancelled", qualname="Slowest", timeout_s=5.0)
        assert {each["stage"] for each in session.states if each["class"] == "Slowest"} == {"queued", ""}


async def test_an_agent_that_is_killed_is_a_failure_that_says_so(project, slow):
    async with editor(project, options=TRUSTED) as session:
        started = await hanging(session, slow)
        os.kill(started[0], signal.SIGKILL)
        failed = await session.state("failed", timeout_s=15.0)
        assert failed["message"].startswith("The agent process was killed by SIGKILL")
        await gone(started)
        assert await session.run("generate", slow.as_uri(), "Slow")
        assert await session.run("cancel", slow.as_uri(), "Slow")
        await session.state("cancelled", timeout_s=15.0)
