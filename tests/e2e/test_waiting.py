"""The command line beside other jobs of the user: one at a time has a device, and nothing is measured beside it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import CUTESMITH, cutesmith
from cutesmith_agent.job import Job
from cutesmith_evaluator.types import Task
from cutesmith_server.cli.working import DeviceBusyError, agent_at_work
from cutesmith_server.devices import CPU, Devices, Place

WAITING = "waiting until it is done"


@pytest.fixture
def held() -> tuple[Devices, list[Place]]:
    """Every place on the CPU, as other jobs have them."""
    devices, places = Devices(), []
    while (place := devices.take_now(CPU)) is not None:
        places.append(place)
    return devices, places


def asked(project: Path, *more: str) -> list[str]:
    """A job that needs no torch: the interpreter is none, which it says as soon as it begins."""
    return ["optimize", str(project / "new_gelu.py"), "--device", "none", "--interpreter", "/bin/false", *more]


def test_a_device_that_another_job_has_is_waited_for(project, held):
    devices, places = held
    pipe, words = subprocess.PIPE, [*CUTESMITH, *asked(project)]
    command = subprocess.Popen(words, stderr=pipe, stdout=subprocess.DEVNULL, text=True)
    assert command.stderr is not None
    said = ""
    while WAITING not in said:
        said += command.stderr.readline()
    assert command.poll() is None
    devices.release(places[0])
    assert "/bin/false" in command.communicate(timeout=30)[1]  # the job began


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_who_does_not_want_to_wait_is_told_at_once(project, held, form):
    ended = cutesmith(*asked(project, "--no-wait", *form))
    assert ended.status == 3
    assert re.search(r"Another job of yours.* has the device: try again", ended.stderr)
    assert not (project / ".cutesmith").exists()


def test_a_wait_has_an_end(project, held):
    said: list[str] = []
    job = Job("optimize", Task(str(project / "new_gelu.py"), "NewGELU"), str(project), sys.executable, device="none")

    async def wait() -> None:
        async with agent_at_work(job, said.append, waits=True, most_s=0.3):
            raise AssertionError("it has no place")

    with pytest.raises(DeviceBusyError, match="wait for it or cancel it"):
        asyncio.run(wait())
    assert len(said) == 1
