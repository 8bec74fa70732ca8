"""How long a job takes from the command to a kernel that is validated, timed and confirmed, and what it waits for.

For each example on the device that there is, one after the other with the same worker (the first has it start): the
seconds until the first validated draft, in all, and of each kind of request, appended to results/job_times.jsonl.
`--log` takes every step that a request told, with its seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pipeline import KeptWorker, best_of, optimize
from records import RESULTS, append_line, environment_fields
from suite import EXAMPLE_MODULES, Example


@dataclass
class Stopwatch:
    """Seconds of each kind of request, and lines `seconds request: step`."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    lines: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    validated_s: float | None = None

    @contextmanager
    def timing(self, request: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            now = time.perf_counter()
            self.seconds[request] += now - begun
            self.note(f"{request} took {now - begun:.2f} s")
            if request == "validate" and self.validated_s is None:
                self.validated_s = now - self.started

    def note(self, text: str) -> None:
        self.lines.append(f"{time.perf_counter() - self.started:8.2f} {text}")


class WatchedWorker(KeptWorker):
    """Tells a stopwatch of every request."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Stopwatch()

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return partial(self._watched, name, value) if callable(value) else value

    def _watched(self, name: str, request: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        tell = named.get("on_progress")
        if tell is not None:
            named["on_progress"] = lambda step: (self.watch.note(f"  {name}: {step}"), tell(step))
        with self.watch.timing(name):
            return request(*arguments, **named)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", metavar="STEM", action="append", help="this example (repeatable), not all")
    options.add_argument("--log", type=Path)
    chosen = options.parse_args()
    common = environment_fields()
    with tempfile.TemporaryDirectory(prefix="cutesmith-job-") as work, WatchedWorker() as worker:
        wanted = [each for each in EXAMPLE_MODULES if chosen.only is None or each.stem in chosen.only]
        for number, example in enumerate(wanted):
            row = {"worker_was_warm": number > 0} | measured(example, Path(work) / example.stem, worker, chosen.log)
            append_line(RESULTS / "job_times.jsonl", common | row)
            print(row, flush=True)


def measured(example: Example, folder: Path, worker: WatchedWorker, log: Path | None) -> dict[str, Any]:
    file = example.case(example.stem, {}).write(folder)
    worker.watch = Stopwatch()
    report = optimize(worker, file, example.qualname)
    total = time.perf_counter() - worker.watch.started
    if log is not None:
        with log.open("a") as lines:
            lines.writelines(f"{line}\n" for line in (example.stem, *worker.watch.lines))
    seconds = {name: round(value, 2) for name, value in sorted(worker.watch.seconds.items(), key=lambda each: -each[1])}
    first = worker.watch.validated_s
    return {
        "case": example.stem,
        "best": best_of(report)["id"],
        "stopped": report["stopped"],
        "candidates": len(report["candidates"]),
        "first_validated_s": None if first is None else round(first, 2),
        "total_s": round(total, 2),
        "requests_s": seconds,
    }


if __name__ == "__main__":
    main()
