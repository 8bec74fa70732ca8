"""How long a job takes from the command to a kernel that is validated, timed and confirmed, and what it waits for.

For each example on the device that there is: the seconds until the first draft was validated, until the tuned one was
validated in full, in all, and of each kind of request, appended to results/job_times.jsonl. The job has its worker
start, as jobs from the command line and the editor do; with `--warm` it gets one that has validated another module's
kernel. `--log` takes every step that a request told, with its seconds.
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

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.types import Task
from pipeline import KeptWorker, best_of, optimize
from records import RESULTS, append_line, environment_fields
from suite import ACTIVATIONS, EXAMPLE_MODULES, Case, Example


@dataclass
class Stopwatch:
    """Seconds of each kind of request, and lines `seconds request: step`."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    lines: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    validated_s: float | None = None
    tuned_s: float | None = None

    @contextmanager
    def timing(self, request: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            now = time.perf_counter()
            self.seconds[request] += now - begun
            self.note(f"{request} took {now - begun:.2f} s")
            self._validated(request, now - self.started)

    def _validated(self, request: str, passed: float) -> None:
        """Of validations: the first, and the first in full, which is of the tuned draft."""
        if request.startswith("validate") and self.validated_s is None:
            self.validated_s = passed
        if request == "validate in full" and self.tuned_s is None:
            self.tuned_s = passed

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
        in_full = name == "validate" and not named.get("quick")
        with self.watch.timing("validate in full" if in_full else name):
            return request(*arguments, **named)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", metavar="STEM", action="append", help="this example (repeatable), not all")
    options.add_argument("--warm", action="store_true")
    options.add_argument("--log", type=Path)
    chosen = options.parse_args()
    common = environment_fields()
    with tempfile.TemporaryDirectory(prefix="cutesmith-job-") as work, WatchedWorker() as worker:
        wanted = [each for each in EXAMPLE_MODULES if chosen.only is None or each.stem in chosen.only]
        for example in wanted:
            worker.renew()
            if chosen.warm:
                warm_up(worker, Path(work) / f"before_{example.stem}")
            row = {"worker_was_warm": chosen.warm} | measured(example, Path(work) / example.stem, worker, chosen.log)
            append_line(RESULTS / "job_times.jsonl", common | row)
            print(row, flush=True)


def warm_up(worker: KeptWorker, folder: Path) -> None:
    """Has the worker trace, compile and validate the first kernel for a module that no example is."""
    file = Case("ReLU", ACTIVATIONS, "ReLU", "pointwise", {"ROWS": "64", "COLUMNS": "4096"}).write(folder)
    task = Task(str(file), "ReLU")
    inspection = worker.inspect(task)
    arch = inspection.environment.arch or "sm_90a"
    candidate = folder / "re_lu_cute.py"
    candidate.write_text(propose(inspection, Target("ReLU", file, arch)).drafts[0].source)
    worker.compile(task, candidate, [arch])
    assert worker.validate(task, candidate, quick=True).ok


def measured(example: Example, folder: Path, worker: WatchedWorker, log: Path | None) -> dict[str, Any]:
    file = example.case(example.stem, {}).write(folder)
    worker.watch = Stopwatch()
    report = optimize(worker, file, example.qualname)
    total = time.perf_counter() - worker.watch.started
    if log is not None:
        with log.open("a") as lines:
            lines.writelines(f"{line}\n" for line in (example.stem, *worker.watch.lines))
    seconds = {name: round(value, 2) for name, value in sorted(worker.watch.seconds.items(), key=lambda each: -each[1])}
    return {
        "case": example.stem,
        "best": best_of(report)["id"],
        "stopped": report["stopped"],
        "candidates": len(report["candidates"]),
        "first_validated_s": rounded(worker.watch.validated_s),
        "tuned_s": rounded(worker.watch.tuned_s),
        "total_s": round(total, 2),
        "requests_s": seconds,
    }


def rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)


if __name__ == "__main__":
    main()
