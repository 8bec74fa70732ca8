"""How long the emulated device takes to validate every example and benchmark task at its own sizes.

Run: python benchmarks/emulated_tasks.py [--quick] [NAME ...]. Prints a line for each: seconds, CPU seconds (on a
busy machine the better figure), the worker's largest resident memory, the verdict, and what of the task ran.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.errors import WorkerError
from cutesmith_evaluator.types import Task, Validation
from suite import EXAMPLE_MODULES, Case, kernelbench_cases

_DEADLINE_S = 300.0


def own_cases() -> Iterator[Case]:
    """The examples and KernelBench's tasks as their files have them."""
    yield from (example.case(example.stem, {}) for example in EXAMPLE_MODULES)
    yield from kernelbench_cases()


def line_of(case: Case, *, quick: bool) -> str:
    """The case validated in a worker of its own."""
    with tempfile.TemporaryDirectory() as scratch, Worker(Path(sys.executable)) as worker:
        folder = Path(scratch)
        task = Task(str(case.write(folder)), case.qualname)
        inspection = worker.inspect(task)
        if inspection.graph is None:
            return f"{case.name:22} not traced: {inspection.findings[0].message}"
        (draft, *_) = propose(inspection, Target(case.qualname, Path(task.file), "sm_90a")).drafts
        candidate = folder / "candidate_cute.py"
        candidate.write_text(draft.source)
        started, spent = time.monotonic(), _cpu_s(worker)
        try:
            dims = inspection.graph.dynamic_dims
            verdict = worker.validate(
                task, candidate, device="emulated", dynamic_dims=dims, quick=quick, deadline_s=_DEADLINE_S
            )
        except WorkerError as error:
            return f"{case.name:22} {time.monotonic() - started:6.1f} s  {error}"
        seconds = f"{time.monotonic() - started:6.1f} s {_cpu_s(worker) - spent:6.1f} CPU-s"
        return f"{case.name:22} {seconds} {_peak_mib(worker):6} MiB  {_words(verdict)}"


def _cpu_s(worker: Worker) -> float:
    """What the worker has used, of all cores."""
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in _processes(worker))
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def _peak_mib(worker: Worker) -> int:
    """The largest resident memory of the worker so far."""
    statuses = (Path(f"/proc/{pid}/status").read_text() for pid in _processes(worker))
    peaks = (re.search(r"VmHWM:\s+(\d+) kB", status) for status in statuses)
    return max((int(found[1]) // 1024 for found in peaks if found), default=0)


def _processes(worker: Worker) -> list[int]:
    """The worker's own and those below it: in a sandbox it is not the one that was started."""
    found = [worker.pid] if worker.pid else []
    for pid in found:
        found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return found


def _words(verdict: Validation) -> str:
    result = {True: "right", False: "wrong", None: "not judged"}[verdict.ok]
    told = [each for each in verdict.checks if each.startswith("emulated device")]
    wrong = [finding.message for finding in verdict.findings if finding.severity == "error" or verdict.ok is None]
    return f"{result}, {verdict.precision}; {len(verdict.checks)} checks; {'; '.join([*told, *wrong])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases whose name holds one of these; default: all")
    parser.add_argument("--quick", action="store_true", help="the checks of a round of tuning")
    options = parser.parse_args()
    for case in own_cases():
        if not options.names or any(name in case.name for name in options.names):
            print(line_of(case, quick=options.quick), flush=True)


if __name__ == "__main__":
    main()
