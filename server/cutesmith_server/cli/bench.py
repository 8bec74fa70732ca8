"""`cutesmith bench`: a job for each file, one after the other, each in processes of its own; resumable."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING

from cutesmith_agent.job import Job
from cutesmith_evaluator.types import Task
from cutesmith_server.agent_process import Died, Done, StageReached
from cutesmith_server.bench.outcome import Record, failure, record_of
from cutesmith_server.bench.results import Results, open_results, summary, write_summary
from cutesmith_server.bench.tasks import BenchTask, find_tasks, shard_of
from cutesmith_server.cli.jobs import interpreter
from cutesmith_server.cli.output import console, from_here, print_json
from cutesmith_server.cli.working import DeviceBusyError, agent_at_work
from cutesmith_server.errors import RefusedError
from cutesmith_server.report import ReportError, read_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Shown = Callable[[str], None]


def bench(options: argparse.Namespace) -> int:
    """0 when every task of this shard has a verdict, 4 when time ran out before."""
    tasks, skipped = find_tasks(options.paths)
    number, count = options.shard
    mine = shard_of(tasks, number, count)
    out = options.out.absolute()
    results = open_results(out, f"{number}-of-{count}")
    done = results.known()
    waiting = [task for task in mine if task.key not in done]
    for each in skipped:
        print(f"left out: {from_here(each.file)}: {each.reason}", file=sys.stderr)
    left = _run_all(waiting, results, options, len(mine))
    command = join(["cutesmith", *sys.argv[1:]])
    result = summary(tasks, results.known(), f"{datetime.now(UTC):%Y-%m-%d}", command)
    files = write_summary(out, result)
    if options.json:
        print_json(result)
    else:
        _say(result, files, left)
    return 4 if left else 0


def _run_all(waiting: Sequence[BenchTask], results: Results, options: argparse.Namespace, total: int) -> int:
    """Runs them until the time is up; how many are left."""
    end = time.monotonic() + options.time_limit if options.time_limit else float("inf")
    with _progress(total, total - len(waiting), quiet=options.json) as (shown, advance):
        for number, task in enumerate(waiting):
            if time.monotonic() >= end:
                return len(waiting) - number
            record = _run_one(task, results.folder, options, shown)
            results.append(record)
            advance(f"{task.place}: {_words(record)}")
    return 0


def _run_one(task: BenchTask, folder: Path, options: argparse.Namespace, shown: Shown) -> Record:
    start = time.monotonic()
    try:
        file = task.copy_to(folder / "tasks")
        done = asyncio.run(_follow(_job(task, file, options), lambda stage: shown(f"{task.place}: {stage}")))
        return record_of(task, read_report(done.report), time.monotonic() - start)
    except DeviceBusyError:  # says nothing of the task
        raise
    except (RefusedError, ReportError, OSError) as error:
        return failure(task, str(error), time.monotonic() - start)


def _job(task: BenchTask, file: Path, options: argparse.Namespace) -> Job:
    return Job(
        kind="optimize",
        task=Task(str(file), task.qualname),
        workspace=str(file.parent),
        interpreter=interpreter(options),
        archs=tuple(options.arch),
        device=options.device,
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


@contextmanager
def _progress(total: int, done: int, *, quiet: bool) -> Iterator[tuple[Shown, Shown]]:
    """(what is going on, a task has ended) on stderr."""
    if quiet:
        yield (lambda _: None), (lambda _: None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        bar = progress.add_task("starting", total=total, completed=done)

        def advance(words: str) -> None:
            progress.advance(bar)
            progress.console.print(Text(words), soft_wrap=True)

        yield (lambda words: progress.update(bar, description=words)), advance


def _words(record: Record) -> str:
    ratios = [f"{ratio:.2f} × {name}" for name, ratio in record["speedup"].items() if ratio is not None]
    precision = [f"precision {record['precision']}"] if record["precision"] else []
    remark = [record["remark"]] if record["remark"] and not ratios else []
    return "; ".join((record["outcome"], *precision, *ratios, *remark))


def _say(result: dict[str, object], files: Sequence[Path], left: int) -> None:
    from rich.text import Text

    screen = console()
    tasks = result["tasks"]
    assert isinstance(tasks, list)
    right = sum(task["ok"] is True for task in tasks)
    screen.print(Text(f"{right} of {len(tasks)} tasks right; {', '.join(from_here(file) for file in files)}"))
    if left:
        screen.print(Text(f"The time is up: {left} tasks of this shard are left; run the command again to go on."))
