"""One task of a benchmark: its job, in processes of its own, on the machine that this is called on."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from cutesmith_agent.job import Job
from cutesmith_evaluator.types import Task
from cutesmith_server.agent_process import Died, Done, StageReached
from cutesmith_server.bench.outcome import Record, failure, record_of
from cutesmith_server.bench.tasks import BenchTask
from cutesmith_server.cli.working import DeviceBusyError, agent_at_work
from cutesmith_server.errors import RefusedError
from cutesmith_server.report import KernelFile, ReportError, read_report

Shown = Callable[[str], None]


@dataclass(frozen=True)
class Orders:
    """What the command says of every job. `interpreter` None: the Python that runs this."""

    interpreter: str | None
    archs: tuple[str, ...]
    device: Literal["auto", "cuda", "emulated", "none"]


@dataclass(frozen=True)
class Ended:
    """A task that came to its end, and its kernel, if there is one."""

    task: BenchTask
    record: Record
    kernel: KernelFile | None = None


def one_by_one(waiting: Sequence[BenchTask], folder: Path, orders: Orders, end: float, shown: Shown) -> Iterator[Ended]:
    """The tasks as they end, on this machine, each on a copy of its file in `folder`; none is begun after `end` (of
    time.monotonic)."""
    for task in waiting:
        if time.monotonic() >= end:
            return
        yield run_task(task, partial(task.copy_to, folder), orders, shown)


def run_task(task: BenchTask, file: Callable[[], Path], orders: Orders, shown: Shown) -> Ended:
    """`file` makes the copy that the job works on, and may raise OSError. Raises DeviceBusyError, which says nothing of
    the task."""
    start = time.monotonic()
    try:
        done = asyncio.run(_follow(_job(task, file(), orders), lambda stage: shown(f"{task.place}: {stage}")))
        report = read_report(done.report)
        return Ended(task, record_of(task, report, time.monotonic() - start), report.kernel)
    except DeviceBusyError:
        raise
    except (RefusedError, ReportError, OSError) as error:
        return Ended(task, failure(task, str(error), time.monotonic() - start))


def _job(task: BenchTask, file: Path, orders: Orders) -> Job:
    return Job(
        kind="optimize",
        task=Task(str(file), task.qualname),
        workspace=str(file.parent),
        interpreter=orders.interpreter or sys.executable,
        archs=orders.archs,
        device=orders.device,
        resume=True,
        proposer="recipes",
    )


async def _follow(job: Job, shown: Shown) -> Done:
    """Raises RefusedError when the agent dies."""
    async with agent_at_work(job, shown, waits=True) as agent:
        async for event in agent.events():
            if isinstance(event, Done):
                return event
            if isinstance(event, Died):
                raise RefusedError(event.message)
            if isinstance(event, StageReached):
                shown(event.stage)
        raise AssertionError("the events of an agent end with Done or Died")
