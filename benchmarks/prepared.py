"""The benchmark in two steps, where time on the device is scarce: no search, and the preparation needs no device.

`prepare FOLDER RESULTS` inspects the cases that RESULTS (results/memory_bound.jsonl) lacks (`--only TEXT`, repeatable:
of these, those whose name contains it; `--level1`, `--level2`: those of KernelBench) and writes the recipes' best
drafts, as accepted, to FOLDER. `measure FOLDER RESULTS` then validates (quickly) and times on this CUDA device what
RESULTS still lacks: each process compiles its share of the cases, all wait for one another, and then they choose
drafts and time one at a time, alone on the device. A case's inputs are on the device only while it needs them, and
cases of several gigabytes are compiled four at a time.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cutesmith_agent.recipes import Target, kinds_in_turn, propose
from cutesmith_agent.source.naming import snake_case
from cutesmith_evaluator.types import Task
from kernelbench import level2
from memory_bound import is_chosen
from pipeline import KeptWorker, write_accepted
from prepared_case import BASELINES, PreparedCase
from records import RESULTS, append_line, environment_fields, read_lines
from suite import Case, all_cases, attention_cases

DRAFTS = 6
PROCESSES = 8
STAGES = ("compiled", "chosen", "adopted")
LARGE = 1 << 31  # bytes that a case reads and writes
LARGE_AT_ONCE = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "measure", "share"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS / "memory_bound.jsonl")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--level1", action="store_true")
    parser.add_argument("--level2", action="store_true")
    parser.add_argument("--drafts", type=int, default=DRAFTS, help="of each case (default %(default)s)")
    parser.add_argument("--number", type=int, default=0)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.folder.absolute(), options.results, chosen_cases(options), options.drafts)
    elif options.step == "measure":
        measure_in_processes(Path(__file__), options.folder.absolute(), options.results.absolute())
    else:
        measure_share(options.folder, options.results, options.number)


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    if options.level2:
        cases = level2_cases(options.folder.absolute())
    else:
        cases = tuple(
            case for case in (*all_cases(), *attention_cases()) if case.name[0].isdigit() or not options.level1
        )
    return [case for case in cases if is_chosen(case, options.only)]


def level2_cases(folder: Path) -> tuple[Case, ...]:
    """KernelBench's level 2, the tasks with a convolution, whose files are written to `folder`."""
    files = level2.write(folder)
    return tuple(Case(f"L2 {file.stem.replace('_', ' ')}", file, "Model", "pointwise") for file in files)


def prepare(folder: Path, results: Path, chosen: list[Case], most: int = DRAFTS) -> None:
    """`most`: drafts of a case."""
    done = {line["case"] for line in read_lines(results) if "failed" not in line}
    cases = [case for case in chosen if case.name not in done]
    with KeptWorker() as worker:
        for number, case in enumerate(cases):
            place = folder / f"case_{number:02}"
            file = case.write(place)
            inspection = worker.inspect(Task(str(file), case.qualname))
            there = replace(inspection.environment, device="CUDA")  # where drafts are measured
            proposal = propose(replace(inspection, environment=there), Target(case.qualname, file, "sm_90a"))
            drafts = kinds_in_turn(proposal.drafts, most)
            if not drafts:
                print(f"{case.name}: {' '.join(finding.message for finding in proposal.findings)}", flush=True)
                continue
            kernel = f"{snake_case(case.qualname)}_cute"
            for k, draft in enumerate(drafts):
                write_accepted(file, case.qualname, kernel, draft.source, place / f"draft_{k}")
            size = inspection.graph.bytes if inspection.graph else 0
            about = {"case": case.name, "kind": case.kind, "file": file.name, "qualname": case.qualname, "bytes": size}
            schedules = [draft.schedule for draft in drafts]
            (place / "about.json").write_text(json.dumps(about | {"kernel": kernel, "schedules": schedules}))
            print(case.name, len(drafts), flush=True)


def measure_in_processes(script: Path, folder: Path, results: Path) -> None:
    """`script`: whose step `share` each process runs."""
    (folder / "common.json").write_text(json.dumps(environment_fields()))
    for left in folder.glob("reached_*"):
        left.unlink()
    command = [sys.executable, str(script), "share", str(folder), str(results), "--number"]
    running = [subprocess.Popen([*command, str(number)]) for number in range(PROCESSES)]
    while any(process.poll() is None for process in running):
        time.sleep(0.2)
        for number, process in enumerate(running):
            if process.poll() is not None:  # nobody waits for one that has died
                for stage in STAGES:
                    (folder / f"reached_{stage}_{number}").touch()


def measure_share(folder: Path, results: Path, number: int) -> None:
    import torch

    share = Share(folder, results, number)
    with torch.no_grad():
        ready = compiled_cases(share)
        share.wait("compiled")
        with share.alone():
            for case in list(ready):
                if not share.tried(case.about, lambda case=case: case.with_inputs(case.choose) or case):
                    ready.remove(case)
        share.wait("chosen")
        for case in list(ready):
            with room_for(folder, case.place, number):
                if not share.tried(case.about, lambda case=case: case.with_inputs(case.adopt) or case):
                    ready.remove(case)
        share.wait("adopted")
        with share.alone():
            for case in ready:
                for line in share.tried(case.about, lambda case=case: case.with_inputs(case.measured)):
                    append_line(results, share.common | line)
                    print(summary(line), flush=True)


def compiled_cases(share: Share, baselines: Sequence[str] = BASELINES) -> list[PreparedCase]:
    """The share's cases that RESULTS lacks, as far as they run."""
    done = {line["case"] for line in read_lines(share.results) if "failed" not in line}
    abouts = {place: json.loads((place / "about.json").read_text()) for place in prepared_in(share.folder)}
    ready: list[PreparedCase] = []
    for place in [place for place, about in abouts.items() if about["case"] not in done][share.number :: PROCESSES]:
        with room_for(share.folder, place, share.number):
            ready += share.tried(abouts[place], lambda place=place: PreparedCase(place, baselines))
    return ready


def prepared_in(folder: Path) -> list[Path]:
    """The cases for which there are drafts."""
    return sorted(about.parent for about in folder.glob("case_*/about.json"))


@dataclass
class Share:
    """One process's part of the cases; all processes wait for one another at each stage."""

    folder: Path
    results: Path
    number: int

    def __post_init__(self) -> None:
        self.common = json.loads((self.folder / "common.json").read_text())

    def tried(self, about: dict[str, Any], step: Callable[[], Any]) -> list[Any]:
        """[what the step gives], or [] and a line that says why it failed."""
        try:
            return [step()]
        except Exception as error:  # noqa: BLE001 - the others' figures do not depend on it
            words = f"{type(error).__name__}: {error}"[:500]
            append_line(self.results, self.common | {"case": about["case"], "kind": about["kind"], "failed": words})
            print(f"{about['case']}: FAILED: {words}", flush=True)
            return []

    def wait(self, stage: str) -> None:
        (self.folder / f"reached_{stage}_{self.number}").touch()
        while len(list(self.folder.glob(f"reached_{stage}_*"))) < PROCESSES:
            time.sleep(0.05)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other process uses the device for timing."""
        with (self.folder / "device.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@contextmanager
def room_for(folder: Path, place: Path, number: int) -> Iterator[None]:
    """Waits until the device has memory for a case, where it is large."""
    if json.loads((place / "about.json").read_text())["bytes"] < LARGE:
        yield
        return
    with (folder / f"large_{number % LARGE_AT_ONCE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def summary(line: dict[str, Any]) -> str:
    timing = line["best"]["timing"]
    arms = ", ".join(f"{arm['name']} {arm['median_ms']:.4f}" for arm in timing["arms"])
    verdict = f"{line['best']['ok']} {line['best']['precision']} {line['best']['findings']}"
    return f"{line['case']}: {verdict} {arms}; {timing['fraction_of_copy']:.3f} of a copy; {line['seconds']} s"


if __name__ == "__main__":
    main()
