"""Places on a device: in line by priority, and shared with the other servers of the machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutesmith_server.devices import CPU, Devices, Place, device_of
from cutesmith_server.orders import Priority

pytestmark = pytest.mark.asyncio

GPU = "cuda-0"
HOLDS = """\
import asyncio, sys, time
from pathlib import Path
from cutesmith_server.devices import Devices
from cutesmith_server.orders import Priority
place = asyncio.run(Devices(Path(sys.argv[1])).take("cuda-0", Priority.ASKED, lambda: None))
print("held", flush=True)
time.sleep(60)
"""


def nobody() -> None:
    """Is told when another server is in the way."""


async def taken(devices: Devices, priority: Priority, order: list[str], name: str) -> Place:
    place = await devices.take(GPU, priority, nobody)
    order.append(name)
    return place


async def test_the_first_in_line_is_the_one_that_was_asked_for(tmp_path):
    devices, order = Devices(tmp_path), []
    place = await devices.take(GPU, Priority.IDLE, nobody)
    assert devices.is_busy(GPU)
    assert not devices.is_busy(CPU)
    waiting = [
        asyncio.create_task(taken(devices, Priority(priority), order, name))
        for priority, name in (
            (Priority.IDLE, "d"),
            (Priority.SAVED, "c"),
            (Priority.ASKED, "a"),
            (Priority.ASKED, "b"),
        )
    ]
    await asyncio.sleep(0)
    waiting[0].cancel()
    for task in (waiting[2], waiting[3], waiting[1]):
        devices.release(place)
        place = await asyncio.wait_for(task, 5)
    devices.release(place)
    assert order == ["a", "b", "c"]
    assert not devices.is_busy(GPU)


async def test_a_gpu_has_one_place_and_the_cpu_two_or_a_quarter_of_its_cores(tmp_path):
    devices = Devices(tmp_path)
    for device, places in ((GPU, 1), (CPU, max(2, (os.cpu_count() or 1) // 4))):
        for _ in range(places):
            assert not devices.is_busy(device)
            await devices.take(device, Priority.ASKED, nobody)
        assert devices.is_busy(device)


async def test_another_servers_job_is_waited_for_and_said_and_its_death_is_noticed(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    devices, told = Devices(tmp_path), []
    task = asyncio.create_task(devices.take(GPU, Priority.ASKED, lambda: told.append(1)))
    while not told:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert not task.done()
    other.kill()
    other.communicate()
    place = await asyncio.wait_for(task, 5)
    assert (place.number, told) == (0, [1])
    assert place.descriptor is not None


async def test_where_nothing_can_be_written_the_places_are_this_servers_own(tmp_path):
    (tmp_path / "file").write_text("")
    devices = Devices(tmp_path / "file" / "devices")
    place = await devices.take(GPU, Priority.ASKED, nobody)
    assert place.descriptor is None
    assert devices.is_busy(GPU)
    devices.release(place)
    assert not devices.is_busy(GPU)


@pytest.mark.parametrize(
    ("asked", "visible", "device"),
    [
        ("emulated", None, CPU),
        ("none", "0", CPU),
        ("cuda", None, "cuda-0"),
        ("cuda", "3,1", "cuda-3"),
        ("cuda", "GPU-8f/1", "cuda-GPU-8f/1"),
        ("auto", "", CPU),
        ("auto", "-1", CPU),
    ],
)
async def test_which_device_a_job_will_use(asked, visible, device):
    assert device_of(asked, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == device


async def test_a_name_with_a_slash_is_a_file_of_the_folder(tmp_path: Path):
    await Devices(tmp_path).take("cuda-GPU/../1", Priority.ASKED, nobody)
    assert len(list(tmp_path.iterdir())) == 1
