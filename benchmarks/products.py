"""Matrix products: every schedule's time, and errors beside eager's, in two steps as in prepared.py.

`prepare FOLDER` writes the recipes' drafts for each case to FOLDER and needs no device (`--only TEXT`, repeatable;
`--half`: the sweep in half precision; `--attention`: attention; `--level2`: that level's tasks with a convolution;
`--drafts N`: the first N of each).
`measure FOLDER RESULTS` runs on a CUDA device. Each case has a process; they compile side by side, use the device one
at a time, and say what they are at. A schedule with which one is silent for `SILENT_S` is a hang: the case starts again
without it. A line of RESULTS has a case's errors against float64 (rms and max, eager's and each schedule's), medians in
milliseconds, torch.compile's too, and how the fastest schedule's time is spread over its kernels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from product_runs import run_case
from suite import Case, attention_cases, half_cases, product_cases

PROCESSES = 8
SILENT_S = 15.0  # once a case has the device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "measure", "case"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--skip", action="append", default=[], metavar="SCHEDULE")
    parser.add_argument("--seconds", type=float, default=600.0, help="after which no case begins")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--level2", action="store_true")
    parser.add_argument("--attention", action="store_true")
    parser.add_argument("--drafts", type=int, default=99)
    options = parser.parse_args()
    folder = options.folder.absolute()
    if options.step == "prepare":
        from memory_bound import is_chosen
        from prepared import level2_cases

        cases = half_cases() if options.half else level2_cases(folder) if options.level2 else product_cases()
        cases = attention_cases() if options.attention else cases
        prepare(folder, [case for case in cases if is_chosen(case, options.only)], options.drafts)
    elif options.results is None:
        parser.error("measure needs the file of results")
    elif options.step == "measure":
        measure(folder, options.results.absolute(), time.monotonic() + options.seconds)
    else:
        run_case(folder, options.results, options.skip)


def prepare(folder: Path, cases: list[Case], most: int) -> None:
    from cutesmith_agent.recipes import Target, propose
    from cutesmith_evaluator.types import Task
    from pipeline import KeptWorker

    with KeptWorker() as worker:
        for number, case in enumerate(cases):
            place = folder / f"case_{number:02}"
            file = case.write(place)
            inspection = worker.inspect(Task(str(file), case.qualname))
            there = replace(inspection.environment, device="CUDA")  # where drafts are measured
            found = propose(replace(inspection, environment=there), Target(case.qualname, file, "sm_90a"))
            for k, draft in enumerate(found.drafts[:most]):
                (place / f"draft_{k}_cute.py").write_text(draft.source)
            about = {"case": case.name, "file": file.name, "qualname": case.qualname}
            schedules = [draft.schedule for draft in found.drafts[:most]]
            (place / "about.json").write_text(json.dumps(about | {"schedules": schedules}))
            print(case.name, len(found.drafts), *(finding.message for finding in found.findings), flush=True)


def measure(folder: Path, results: Path, until: float) -> None:
    with ThreadPoolExecutor(PROCESSES) as pool:
        for place in sorted(folder.glob("case_*")):
            pool.submit(_watched, place, results, until)


def _watched(place: Path, results: Path, until: float) -> None:
    """Runs a case, and again without a schedule that hangs."""
    skipped: list[str] = []
    while time.monotonic() < until:
        hung = _run(place, results, skipped, until)
        if hung is None:
            return
        print(f"{place.name}: HANG of schedule {hung}", flush=True)
        skipped.append(hung)


def _run(place: Path, results: Path, skipped: list[str], until: float) -> str | None:
    """The schedule at which the case's process went silent; None if it came to its end, or cannot go on."""
    command = [sys.executable, "-u", str(Path(__file__)), "case", str(place), str(results)]
    command += [word for each in skipped for word in ("--skip", each)]
    schedule = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lines: Queue[str] = Queue()
        Thread(target=_read, args=(process, lines), daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=SILENT_S if schedule else max(until - time.monotonic(), 0.0))
            except Empty:
                process.kill()
                return schedule
            if not line:
                return None
            print(f"{time.monotonic():.1f} {place.name}: {line.rstrip()[:700]}", flush=True)
            words = line.split()
            schedule = words[1] if words[:1] == ["launching"] else None if words[:1] == ["done"] else schedule


def _read(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    """Hands on what the process says, and an empty line at its end."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


if __name__ == "__main__":
    main()
