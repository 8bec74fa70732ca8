"""Jobs that are hard to end: one that has just begun, an agent that hears nothing, a process that holds its pipes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from cutesmith_agent.job import Job
from cutesmith_evaluator.processes import descendants
from cutesmith_evaluator.types import Task
from cutesmith_server.jobs import Cancelled, ClassKey, JobEvent, Supervisor

pytestmark = pytest.mark.asyncio


def job_of(path: Path, interpreter: str = sys.executable) -> Job:
    return Job("optimize", Task(str(path), "NewGELU"), str(path.parent), interpreter, device="none")


async def closed_within(jobs: Supervisor, seconds: float) -> float:
    """Closes; returns how long that took."""
    before = time.perf_counter()
    await asyncio.wait_for(jobs.close(), seconds)
    return time.perf_counter() - before


async def test_a_server_that_closes_while_its_agents_start_is_not_held_up(project):
    """At any point of a start, which lasts a few turns of the event loop."""
    turns, others = random.Random(6), set(descendants(os.getpid()))  # of tests that share this process
    for _ in range(40):
        events: dict[str, JobEvent] = {}
        jobs = Supervisor(lambda key, event, seen=events: seen.__setitem__(key.qualname, event))
        for number in range(turns.choice((1, 3))):
            jobs.submit(ClassKey(project / "new_gelu.py", f"A{number}"), job_of(project / "new_gelu.py"))
        for _ in range(turns.randrange(12)):
            await asyncio.sleep(0)
        await closed_within(jobs, 10.0)
        assert {type(event) for event in events.values()} == {Cancelled}
        assert set(descendants(os.getpid())) <= others


async def test_an_agent_that_hears_nothing_is_cancelled_within_a_second_with_all_it_started(project, monkeypatch):
    """Stopped, it cannot end its worker, which here is a program that survives it and holds its pipes."""
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # it says by a file that it runs
    stubborn = project / "python"
    stubborn.write_text(f"#!/bin/sh\ntrap '' TERM HUP\necho $$ > '{project}/started'\nsleep 600\n")
    stubborn.chmod(0o755)
    jobs, others = Supervisor(lambda key, event: None), set(descendants(os.getpid()))
    key = ClassKey(project / "new_gelu.py", "NewGELU")
    jobs.submit(key, job_of(key.path, str(stubborn)))
    async with asyncio.timeout(60):
        while not (project / "started").exists() or not (project / "started").read_text().strip():
            await asyncio.sleep(0.02)
    agent, *workers = [pid for pid in descendants(os.getpid()) if pid not in others]
    assert len(workers) >= 2  # the script, and what it sleeps in
    os.kill(agent, signal.SIGSTOP)
    seconds = await closed_within(jobs, 10.0)
    print(f"ended in {seconds:.2f} s")
    assert seconds < 1.0
    assert set(descendants(os.getpid())) <= others
    assert not [pid for pid in (agent, *workers) if _lives(pid)]


def _lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
