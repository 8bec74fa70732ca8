"""Runs agent processes: in line for a device, one per class, every one of them ended when the server ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cutesmith_server.agent_process import AgentProcess, AnswerOfEditor, Died, Done, Event, StageReached
from cutesmith_server.devices import Devices, Place, device_of
from cutesmith_server.orders import Priority

if TYPE_CHECKING:
    from cutesmith_agent.job import Job

log = logging.getLogger(__name__)

_NICE = {Priority.ASKED: 5, Priority.SAVED: 10, Priority.IDLE: 15}  # the editor and its servers come first


@dataclass(frozen=True)
class ClassKey:
    """A class of a file, whatever the spelling of the file's URI."""

    path: Path
    qualname: str


@dataclass(frozen=True)
class Cancelled:
    """The last event of a job that was cancelled."""


@dataclass(frozen=True)
class Paused:
    """The last event of a job that was paused: what it has found out is in the store, for the job that goes on."""


@dataclass(frozen=True)
class GaveWay:
    """The job was stopped for one that the user asked for, and waits again."""


JobEvent = Event | Cancelled | Paused
Listener = Callable[[ClassKey, JobEvent], None]


@dataclass(eq=False)
class _Entry:
    """A job that waits or runs. `ending`: why it is being stopped."""

    key: ClassKey
    job: Job
    priority: Priority
    device: str
    task: asyncio.Task[Done | Died] | None = None
    is_running: bool = False
    ending: Cancelled | Paused | GaveWay | None = None


class Supervisor:
    """Owns every job's task and process. The listener gets each job's events; exactly one of them is its last
    (`Done`, `Died`, `Cancelled` or `Paused`)."""

    def __init__(
        self, listener: Listener, devices: Devices | None = None, editor: AnswerOfEditor | None = None
    ) -> None:
        self._listener, self._editor = listener, editor
        self._entries: dict[ClassKey, _Entry] = {}
        self._devices = devices or Devices()
        self._is_closed = False

    def runs(self, key: ClassKey) -> bool:
        """Whether the class has a job, at work or in line."""
        return key in self._entries

    def would_queue(self, job: Job) -> bool:
        return self._devices.is_busy(device_of(job.device))

    def submit(self, key: ClassKey, job: Job, priority: Priority = Priority.ASKED) -> None:
        """Starts a job, or puts it in line. The class must have none."""
        assert not self.runs(key)
        assert not self._is_closed
        entry = self._entries[key] = _Entry(key, job, priority, device_of(job.device))
        if priority is Priority.ASKED and self._devices.is_busy(entry.device):
            self._make_room(entry.device)
        self._begin(entry)

    def cancel(self, key: ClassKey) -> bool:
        """Cancels the class's job; False when there is none. `Cancelled` follows when its processes are gone."""
        return self._stop(key, Cancelled())

    def pause(self, key: ClassKey) -> bool:
        """Stops the class's job, to go on later; False when there is none. `Paused` follows when the device is free."""
        return self._stop(key, Paused())

    async def close(self) -> None:
        """Cancels every job and returns when all their processes are gone."""
        self._is_closed = True
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for key in tuple(self._entries):
            self._stop(key, Cancelled())
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, entry: _Entry) -> None:
        entry.ending = None
        entry.task = asyncio.create_task(self._run(entry), name=f"job {entry.key.qualname}")
        entry.task.add_done_callback(lambda task: self._ended(entry, task))

    def _make_room(self, device: str) -> None:
        idle = (each for each in self._entries.values() if each.device == device and each.is_running)
        last = max(idle, key=lambda each: each.priority, default=None)
        if last is not None and last.priority is Priority.IDLE:
            self._stop(last.key, GaveWay())

    def _stop(self, key: ClassKey, ending: Cancelled | Paused | GaveWay) -> bool:
        entry = self._entries.get(key)
        if entry is None or entry.task is None:
            return False
        if entry.ending is None:  # a second cancellation would interrupt the clean-up that the first began
            entry.task.cancel()
        if not isinstance(entry.ending, Cancelled):
            entry.ending = ending
        return True

    def _ended(self, entry: _Entry, task: asyncio.Task[Done | Died]) -> None:
        if task.cancelled() and isinstance(entry.ending, GaveWay):
            self._listener(entry.key, StageReached("queued", "a job that you asked for goes first", 0.0))
            self._begin(entry)
            return
        del self._entries[entry.key]
        self._listener(entry.key, _last_event(entry, task))

    async def _run(self, entry: _Entry) -> Done | Died:
        place = await self._devices.take(entry.device, entry.priority, lambda: self._say_held(entry.key))
        entry.is_running = True
        try:
            return await self._follow(entry, place)
        except OSError as error:
            return Died(f"The agent process could not be started: {error}.")
        finally:
            entry.is_running = False
            self._devices.release(place)

    def _say_held(self, key: ClassKey) -> None:
        self._listener(key, StageReached("queued", "waiting for a job of another editor or terminal", 0.0))

    async def _follow(self, entry: _Entry, place: Place) -> Done | Died:
        """Passes on a job's events but the last, which it returns."""
        agent = await AgentProcess.start(
            entry.job, nice=_NICE[entry.priority], holds=place.descriptor, editor=self._editor
        )
        try:
            async for event in agent.events():
                if isinstance(event, Done | Died):
                    return event
                self._listener(entry.key, event)
            raise AssertionError("the events of an agent end with Done or Died")
        finally:
            await asyncio.shield(agent.stop())


def _last_event(entry: _Entry, task: asyncio.Task[Done | Died]) -> JobEvent:
    if task.cancelled():
        log.info("job of %s stopped", entry.key.qualname)
        return Paused() if isinstance(entry.ending, Paused) else Cancelled()
    if (error := task.exception()) is not None:
        log.error("job of %s failed", entry.key.qualname, exc_info=error)
        return Died("The job failed in CuteSmith itself: see the server's log, and please report it.")
    return task.result()
