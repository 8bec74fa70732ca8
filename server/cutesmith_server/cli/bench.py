"""`cutesmith bench`: a job for each file, each in processes of its own, one after the other or on Ray; resumable."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING

from cutesmith_server.bench.outcome import Record
from cutesmith_server.bench.results import Results, open_results, summary, write_summary
from cutesmith_server.bench.running import Ended, Orders, one_by_one
from cutesmith_server.bench.tasks import BenchTask, find_tasks, shard_of
from cutesmith_server.cli.jobs import interpreter
from cutesmith_server.cli.output import console, from_here, print_json

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from cutesmith_server.bench.running import Shown


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
    orders = Orders(interpreter(options) if options.interpreter else None, tuple(options.arch), options.device)
    left = len(waiting)
    with (
        _progress(total, total - left, quiet=options.json) as (shown, advance),
        closing(_ended(waiting, results.tasks, orders, end, shown, options.ray)) as ended,
    ):
        for each in ended:
            results.append(each)
            advance(f"{each.task.place}: {_words(each.record)}")
            left -= 1
    return left


def _ended(
    waiting: Sequence[BenchTask], folder: Path, orders: Orders, end: float, shown: Shown, ray: str | None
) -> Generator[Ended]:
    """The tasks as they end: here, or on the Ray cluster of that address."""
    if ray is None:
        yield from one_by_one(waiting, folder, orders, end, shown)
    elif waiting:
        from cutesmith_server.bench.on_ray import on_cluster

        yield from on_cluster(waiting, folder, orders, end, shown, ray)


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
