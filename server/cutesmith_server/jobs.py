"""Runs agent processes: a few at a time, one per class, every one of them ended when the server ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cutesmith_server.agent_process import AgentProcess, Died, Done, Event

if TYPE_CHECKING:
    from cutesmith_agent.job import Job

log = logging.getLogger(__name__)

RUNNING_AT_ONCE = 2


@dataclass(frozen=True)
class ClassKey:
    """A class of a file, whatever the spelling of the file's URI."""

    path: Path
    qualname: str


@dataclass(frozen=True)
class Cancelled:
    """The last event of a job that was cancelled."""


JobEvent = Event | Cancelled
Listener = Callable[[ClassKey, JobEvent], None]


class Supervisor:
    """Owns every job's task and process. The listener gets each job's events; exactly one of them is its last
    (`Done`, `Died` or `Cancelled`)."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._tasks: dict[ClassKey, asyncio.Task[None]] = {}
        self._processes: dict[ClassKey, AgentProcess] = {}
        self._slots = asyncio.Semaphore(RUNNING_AT_ONCE)

    def runs(self, key: ClassKey) -> bool:
        return key in self._tasks

    def would_queue(self) -> bool:
        return self._slots.locked()

    def submit(self, key: ClassKey, job: Job) -> None:
        """Starts or queues a job. The class must have none."""
        assert not self.runs(key)
        task = asyncio.create_task(self._run(key, job), name=f"job {key.qualname}")
        self._tasks[key] = task

    def cancel(self, key: ClassKey) -> bool:
        """Cancels the class's job; False when there is none. `Cancelled` follows when its processes are gone."""
        task = self._tasks.get(key)
        if task is None:
            return False
        _cancel_once(task)
        return True

    async def close(self) -> None:
        """Cancels every job and returns when all their processes are gone."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            _cancel_once(task)
        await asyncio.gather(*tasks, return_exceptions=True)

    def kill_now(self) -> None:
        """Kills every process without an event loop: the server is going down this instant."""
        for process in tuple(self._processes.values()):
            process.kill_now()

    async def _run(self, key: ClassKey, job: Job) -> None:
        last: JobEvent = Cancelled()
        try:
            async with self._slots:
                last = await self._follow(key, job)
        except asyncio.CancelledError:
            log.info("job of %s cancelled", key.qualname)
        except OSError as error:
            last = Died(f"The agent process could not be started: {error}.")
        finally:
            self._tasks.pop(key, None)
            self._listener(key, last)

    async def _follow(self, key: ClassKey, job: Job) -> Done | Died:
        """Passes on a job's events but the last, which it returns."""
        agent = self._processes[key] = await AgentProcess.start(job)
        try:
            async for event in agent.events():
                if isinstance(event, Done | Died):
                    return event
                self._listener(key, event)
            raise AssertionError("the events of an agent end with Done or Died")
        finally:
            await asyncio.shield(agent.stop())
            self._processes.pop(key, None)


def _cancel_once(task: asyncio.Task[None]) -> None:
    """A second cancellation would interrupt the clean-up that the first began."""
    if not task.cancelling():
        task.cancel()
