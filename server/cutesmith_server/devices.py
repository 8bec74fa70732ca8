"""Places on a device: how many jobs use it at a time, counted over all of this user's servers and command lines on this
machine.

A place is a lock on a file, held by who has the job and by the agent that works there: it is free when both let go.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import logging
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from cutesmith_server.orders import Priority
from cutesmith_server.state_folder import state_folder

log = logging.getLogger(__name__)

CPU = "cpu"
_AT_ONCE = {CPU: max(2, (os.cpu_count() or 1) // 4)}  # nothing is timed there; a GPU has one place
_POLL_S = 0.25


def device_of(asked: str, environment: Mapping[str, str] = os.environ) -> str:
    """The device that a job for `asked` ("auto", "cuda", "emulated", "none") will use, told without CUDA."""
    if asked in ("emulated", "none"):
        return CPU
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.partition(",")[0].strip()
    has_gpu = any(Path("/dev").glob("nvidia[0-9]*")) and first not in ("", "-1")
    return f"cuda-{first}" if has_gpu or asked == "cuda" else CPU


@dataclass(eq=False)
class Place:
    """A place that was taken; `release` it. `descriptor`: of its lock, for the agent to inherit; None without one."""

    device: str
    number: int
    lock: IO[str] | None

    @property
    def descriptor(self) -> int | None:
        return self.lock.fileno() if self.lock else None


@dataclass(order=True)
class _Waiter:
    priority: Priority
    number: int
    is_told: bool = field(default=False, compare=False)


class Devices:
    """The places of this server, and who waits for one."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._taken: dict[str, set[int]] = defaultdict(set)
        self._lines: dict[str, list[_Waiter]] = defaultdict(list)
        self._numbers = itertools.count()
        self._changed = asyncio.Event()

    def is_busy(self, device: str) -> bool:
        """Whether a job that comes now has to wait for one of this server."""
        return bool(self._lines[device]) or len(self._taken[device]) >= _AT_ONCE.get(device, 1)

    async def take(self, device: str, priority: Priority, held_elsewhere: Callable[[], None]) -> Place:
        """Waits in line for a place. `held_elsewhere` is called once where what is waited for is not this server's."""
        line, me = self._lines[device], _Waiter(priority, next(self._numbers))
        line.append(me)
        line.sort()
        try:
            while (place := self.take_now(device) if line[0] is me else None) is None:
                if line[0] is me and not me.is_told and len(self._taken[device]) < _AT_ONCE.get(device, 1):
                    me.is_told = True
                    held_elsewhere()
                await self._news(_POLL_S if line[0] is me else None)
            return place
        finally:
            line.remove(me)
            self._tell()

    async def _news(self, seconds: float | None) -> None:
        """Until something changes here; the first in line looks by itself whether something has in another server."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def release(self, place: Place) -> None:
        self._taken[place.device].discard(place.number)
        if place.lock is not None:
            place.lock.close()
        self._tell()

    def _tell(self) -> None:
        """All that wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def take_now(self, device: str) -> Place | None:
        """A place, if one is free: no matter who waits for it."""
        for number in range(_AT_ONCE.get(device, 1)):
            if number in self._taken[device]:
                continue
            try:
                lock = _locked(self._folder or state_folder() / "devices", f"{device}-{number}")
            except BlockingIOError:
                continue
            except OSError as error:
                log.warning("%s is not shared with other servers: %s", device, error)
                lock = None
            self._taken[device].add(number)
            return Place(device, number, lock)
        return None


def _locked(folder: Path, name: str) -> IO[str]:
    """Raises BlockingIOError where somebody holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / f"{socket.gethostname()}-{name.replace('/', '_')}.lock").open("a")  # homes are shared by machines
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file
