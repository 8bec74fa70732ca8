"""The benchmark in two steps, where time on the device is scarce: no search, and the preparation needs no device.

`prepare FOLDER` inspects the cases that results/memory_bound.jsonl lacks (`--only TEXT`, repeatable: of these, those
whose name contains it) and writes the recipes' first drafts, as accepted, to FOLDER. `measure FOLDER RESULTS` then
validates (quickly) and times them on this CUDA device: each process compiles its share of the cases, all wait for one
another, and then they time one at a time, alone on the device. A case's inputs are on the device only while it needs
them, and cases of several gigabytes are compiled two at a time.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutesmith_agent.recipes import Target, propose
from cutesmith_agent.source.naming import snake_case
from cutesmith_evaluator.types import Task, Timing
from memory_bound import is_chosen
from pipeline import KeptWorker, write_accepted
from records import RESULTS, append_line, environment_fields, read_lines
from suite import all_cases

if TYPE_CHECKING:
    from cutesmith_evaluator.worker.timing_sampling import Sampled

DRAFTS = 2
PROCESSES = 5
LARGE = 1 << 31  # bytes that a case reads and writes
LARGE_AT_ONCE = 2
PICK_S, SAMPLE_S = 0.4, 1.2  # of timing per case: to choose the draft, and for the figures
ARMS = ("candidate", "eager", "control", "compile", "adopted", "adopted-compile")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "measure", "share"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS / "memory_bound.jsonl")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--number", type=int, default=0)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.folder.absolute(), options.results, options.only)
    elif options.step == "measure":
        measure_in_processes(options.folder.absolute(), options.results.absolute())
    else:
        measure_share(options.folder, options.results, options.number)


def prepare(folder: Path, results: Path, only: list[str]) -> None:
    done = {line["case"] for line in read_lines(results) if "failed" not in line}
    cases = [case for case in all_cases() if case.name not in done and is_chosen(case, only)]
    with KeptWorker() as worker:
        for number, case in enumerate(cases):
            place = folder / f"case_{number:02}"
            file = case.write(place)
            inspection = worker.inspect(Task(str(file), case.qualname))
            drafts = propose(inspection, Target(case.qualname, file, "sm_90a")).drafts[:DRAFTS]
            kernel = f"{snake_case(case.qualname)}_cute"
            for k, draft in enumerate(drafts):
                write_accepted(file, case.qualname, kernel, draft.source, place / f"draft_{k}")
            size = inspection.graph.bytes if inspection.graph else 0
            about = {"case": case.name, "kind": case.kind, "file": file.name, "qualname": case.qualname, "bytes": size}
            schedules = [draft.schedule for draft in drafts]
            (place / "about.json").write_text(json.dumps(about | {"kernel": kernel, "schedules": schedules}))
            print(case.name, len(drafts), flush=True)


def measure_in_processes(folder: Path, results: Path) -> None:
    (folder / "common.json").write_text(json.dumps(environment_fields()))
    command = [sys.executable, str(Path(__file__)), "share", str(folder), str(results), "--number"]
    for process in [subprocess.Popen([*command, str(number)]) for number in range(PROCESSES)]:
        process.wait()


def measure_share(folder: Path, results: Path, number: int) -> None:
    import torch

    common = json.loads((folder / "common.json").read_text())
    places = sorted(folder.glob("case_*"))[number::PROCESSES]
    with torch.no_grad():
        ready = []
        for place in places:
            with room_for(folder, place, number):
                ready.append(Prepared(place))
        (folder / f"ready_{number}").touch()
        while len(list(folder.glob("ready_*"))) < PROCESSES:
            time.sleep(0.05)
        with (folder / "device.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for prepared in ready:
                line = common | prepared.measured()
                append_line(results, line)
                print(summary(line), flush=True)


@contextmanager
def room_for(folder: Path, place: Path, number: int) -> Iterator[None]:
    """Waits until the device has memory for a case, where it is large."""
    if json.loads((place / "about.json").read_text())["bytes"] < LARGE:
        yield
        return
    with (folder / f"large_{number % LARGE_AT_ONCE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Prepared:
    """A case whose drafts, baselines and adopted classes are compiled and have run once."""

    def __init__(self, place: Path) -> None:
        import torch

        from cutesmith_evaluator.worker.candidate import load_candidate
        from cutesmith_evaluator.worker.clock import Clock
        from cutesmith_evaluator.worker.inputs import draw
        from cutesmith_evaluator.worker.reference import load_reference
        from cutesmith_evaluator.worker.timing_arms import Subject, call_of

        self.about = json.loads((place / "about.json").read_text())
        self.device = torch.device("cuda", 0)
        self.clock = Clock(self.device)
        self.reference = load_reference(Task(str(place / self.about["file"]), self.about["qualname"]))
        module, inputs = self.reference.build(self.device), draw(self.reference, 0, self.device)
        self.inputs = inputs
        self.subjects = []
        self.calls: list[dict[str, Callable[[], object]]] = []
        for k in range(len(self.about["schedules"])):
            kernel = place / f"draft_{k}" / f"{self.about['kernel']}.py"
            subject = Subject(self.reference, load_candidate(kernel, self.reference), module, inputs, self.device)
            subject.warm_up()
            patched = kernel.with_name(self.about["file"])
            names = ARMS if k == 0 else ("candidate", "adopted", "adopted-compile")
            calls = {name: call_of(subject, "eager" if name == "control" else name, patched) for name in names}
            for call in calls.values():
                call()
            self.subjects.append(subject)
            self.calls.append(calls)
        torch.cuda.synchronize()
        self._put_away()

    def _put_away(self) -> None:
        """Gives the inputs' memory back; the tensors stay the ones that the calls hold."""
        import torch

        for tensor in self.inputs:
            if isinstance(tensor, torch.Tensor):
                tensor.untyped_storage().resize_(0)
        torch.cuda.empty_cache()

    def _fetch(self) -> None:
        import torch

        from cutesmith_evaluator.worker.inputs import draw

        for tensor, fresh in zip(self.inputs, draw(self.reference, 0, self.device), strict=True):
            if isinstance(tensor, torch.Tensor) and isinstance(fresh, torch.Tensor):
                tensor.untyped_storage().resize_(fresh.untyped_storage().nbytes())
                tensor.copy_(fresh)

    def measured(self) -> dict[str, Any]:
        """What `memory_bound.measure` gives for a case."""
        self._fetch()
        try:
            return self._measured()
        finally:
            self._put_away()

    def _measured(self) -> dict[str, Any]:
        from cutesmith_evaluator.speedup import speedup
        from cutesmith_evaluator.worker.checks import run_checks
        from cutesmith_evaluator.worker.inputs_plan import Plan

        start = time.monotonic()
        best = self._fastest()
        timing = self._timing(best)
        plan = Plan(quick=True)
        outcome = run_checks(self.reference, self.subjects[best].candidate, self.device, plan, lambda _: None)
        ms = {arm.name: arm.median_ms for arm in timing.arms}
        found = {
            "ok": outcome.ok,
            "precision": outcome.precision,
            "error": asdict(outcome.error) if outcome.error else None,
            "timing": asdict(timing),
            "speedup": asdict(speedup(timing)),
            "schedule": self.about["schedules"][best],
            "findings": [finding.message for finding in outcome.findings if finding.severity == "error"],
        }
        return {
            "case": self.about["case"],
            "kind": self.about["kind"],
            "stopped": f"Prepared: the faster of {len(self.subjects)} drafts, validated quickly.",
            "candidates": len(self.subjects),
            "best": found,
            "in_compile": {"ratio": ms["adopted-compile"] / ms["adopted"]},
            "seconds": round(time.monotonic() - start, 1),
        }

    def _fastest(self) -> int:
        calls = {str(k): calls["candidate"] for k, calls in enumerate(self.calls)}
        samples = self._sampled(calls, PICK_S).samples
        return min(range(len(self.calls)), key=lambda k: statistics.median(samples[str(k)]))

    def _timing(self, best: int) -> Timing:
        from cutesmith_evaluator.worker.timing_arms import copy_of
        from cutesmith_evaluator.worker.validate import device_name

        size = self.subjects[best].least_bytes()
        copied, copy = copy_of(size, self.device)
        sampled = self._sampled({**self.calls[0], **self.calls[best], "copy": copy}, SAMPLE_S)
        arms, noise, ratios = sampled.arms(), sampled.noise(), sampled.ratios()
        copy_gbps = copied / statistics.median(sampled.samples["copy"]) / 1e6
        share = size / arms["candidate"].median_ms / 1e6 / copy_gbps
        name = device_name(self.device)
        return Timing(name, tuple(arms.values()), copy_gbps, size, share, noise, (), ratios)

    def _sampled(self, calls: dict[str, Callable[[], object]], budget_s: float) -> Sampled:
        from cutesmith_evaluator.worker.timing_sampling import sample_arms

        return sample_arms(self.clock, calls, arm_s=budget_s / len(calls))


def summary(line: dict[str, Any]) -> str:
    timing = line["best"]["timing"]
    arms = ", ".join(f"{arm['name']} {arm['median_ms']:.4f}" for arm in timing["arms"])
    verdict = f"{line['best']['ok']} {line['best']['precision']} {line['best']['findings']}"
    return f"{line['case']}: {verdict} {arms}; {timing['fraction_of_copy']:.3f} of a copy; {line['seconds']} s"


if __name__ == "__main__":
    main()
