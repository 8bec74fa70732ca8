"""An agent at work for the command line, in its place on a device: no other job of the user's is measured beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cutesmith_server.agent_process import AgentProcess
from cutesmith_server.devices import Devices, Place, device_of
from cutesmith_server.errors import RefusedError
from cutesmith_server.orders import Priority

if TYPE_CHECKING:
    from cutesmith_agent.job import Job

MOST_S = 1800.0  # of waiting
_BUSY = "Another job of yours, in an editor or another terminal, has the device"


class DeviceBusyError(RefusedError):
    """Another job had the device, for longer than was to be waited."""


@asynccontextmanager
async def agent_at_work(
    job: Job, say: Callable[[str], None], *, waits: bool, most_s: float = MOST_S
) -> AsyncIterator[AgentProcess]:
    """The job's agent, once its device has a place for it; at the end both are gone. Raises DeviceBusyError (at once
    where it is not to wait) and OSError."""
    devices = Devices()
    place = await _place(devices, device_of(job.device), say, most_s if waits else 0.0)
    try:
        agent = await AgentProcess.start(job, holds=place.descriptor)
        try:
            yield agent
        finally:
            await asyncio.shield(agent.stop())
    finally:
        devices.release(place)


async def _place(devices: Devices, device: str, say: Callable[[str], None], most_s: float) -> Place:
    if (place := devices.take_now(device)) is not None:
        return place
    if not most_s:
        raise DeviceBusyError(f"{_BUSY}: try again when it is done, or leave out --no-wait.")
    say(f"{_BUSY}: waiting until it is done (--no-wait does not wait)")
    try:
        async with asyncio.timeout(most_s):
            return await devices.take(device, Priority.ASKED, lambda: None)
    except TimeoutError:
        minutes = f"{most_s / 60:.0f} minutes"
        raise DeviceBusyError(f"{_BUSY}, for {minutes} by now: wait for it or cancel it, then try again.") from None
