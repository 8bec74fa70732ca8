"""Matrix products: every schedule's time, and errors beside eager's, in two steps as in prepared.py.

`prepare FOLDER` writes the recipes' drafts for each case to FOLDER and needs no device (`--only TEXT`, repeatable).
`measure FOLDER RESULTS` runs on a CUDA device: processes compile their cases, then measure one at a time. A line of
RESULTS has a case's errors against float64 (candidate and eager), eager's median and each schedule's, and how the
fastest one's time is spread over its kernels.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.types import Task
from memory_bound import is_chosen
from pipeline import KeptWorker
from records import append_line, environment_fields
from suite import Case, product_cases

if TYPE_CHECKING:
    import torch

PROCESSES = 6
SAMPLE_S = 0.15  # of timing per schedule


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "measure", "share"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--number", type=int, default=0)
    options = parser.parse_args()
    folder = options.folder.absolute()
    if options.step == "prepare":
        prepare(folder, [case for case in product_cases() if is_chosen(case, options.only)])
    elif options.results is None:
        parser.error("measure needs the file of results")
    elif options.step == "measure":
        measure(folder, options.results.absolute())
    else:
        measure_share(folder, options.results, options.number)


def prepare(folder: Path, cases: list[Case]) -> None:
    with KeptWorker() as worker:
        for number, case in enumerate(cases):
            place = folder / f"case_{number:02}"
            file = case.write(place)
            found = propose(worker.inspect(Task(str(file), case.qualname)), Target(case.qualname, file, "sm_90a"))
            for k, draft in enumerate(found.drafts):
                (place / f"draft_{k}_cute.py").write_text(draft.source)
            about = {"case": case.name, "file": file.name, "qualname": case.qualname}
            schedules = [draft.schedule for draft in found.drafts]
            (place / "about.json").write_text(json.dumps(about | {"schedules": schedules}))
            print(case.name, len(found.drafts), *(finding.message for finding in found.findings), flush=True)


def measure(folder: Path, results: Path) -> None:
    (folder / "common.json").write_text(json.dumps(environment_fields()))
    command = [sys.executable, str(Path(__file__)), "share", str(folder), str(results), "--number"]
    for process in [subprocess.Popen([*command, str(number)]) for number in range(PROCESSES)]:
        process.wait()


def measure_share(folder: Path, results: Path, number: int) -> None:
    import torch

    common = json.loads((folder / "common.json").read_text())
    with torch.no_grad():
        for place in sorted(folder.glob("case_*"))[number::PROCESSES]:
            compiled = Compiled(place)
            with (folder / "device.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                line = common | compiled.measured()
                torch.cuda.empty_cache()
            append_line(results, line)
            print(json.dumps({key: line[key] for key in line if key not in common}), flush=True)


class Compiled:
    """A case whose schedules are compiled, without its inputs on the device."""

    def __init__(self, place: Path) -> None:
        import torch

        from cutesmith_evaluator.worker.candidate import load_candidate
        from cutesmith_evaluator.worker.reference import load_reference

        self.about = json.loads((place / "about.json").read_text())
        self.device = torch.device("cuda", 0)
        self.reference = load_reference(Task(str(place / self.about["file"]), self.about["qualname"]))
        self.drafts: list[Any] = [
            load_candidate(place / f"draft_{k}_cute.py", self.reference) for k in range(len(self.about["schedules"]))
        ]
        for draft in self.drafts:
            draft.module._compiled(0, True)

    def measured(self) -> dict[str, Any]:
        from cutesmith_evaluator.worker.clock import Clock
        from cutesmith_evaluator.worker.inputs import draw
        from cutesmith_evaluator.worker.timing_sampling import sample_arms

        module, inputs = self.reference.build(self.device), draw(self.reference, 0, self.device)
        calls: dict[str, Callable[[], object]] = {"eager": lambda: module(*inputs)}
        for k, draft in enumerate(self.drafts):
            calls[str(k)] = _call(draft, module, inputs)
        errors = self._errors(module, inputs, calls)
        failed = [name for name, error in errors.items() if isinstance(error, str)]
        sampled = sample_arms(Clock(self.device), {n: c for n, c in calls.items() if n not in failed}, arm_s=SAMPLE_S)
        ms = {name: round(statistics.median(samples), 4) for name, samples in sampled.samples.items()}
        best = min((name for name in ms if name != "eager"), key=ms.__getitem__, default=None)
        return {
            "case": self.about["case"],
            "errors": errors,
            "ms": ms,
            "speedup": round(ms["eager"] / ms[best], 2) if best else None,
            "schedule": self.about["schedules"][int(best)] if best else None,
            "kernels": kernels_of(calls[best]) if best else None,
        }

    def _errors(
        self, module: Any, inputs: tuple[object, ...], calls: dict[str, Callable[[], object]]
    ) -> dict[str, Any]:
        """rms and max against float64, of eager and of each schedule; the message of a schedule that fails."""
        import copy

        import torch

        exact = copy.deepcopy(module).double()(*(x.double() if isinstance(x, torch.Tensor) else x for x in inputs))
        found: dict[str, Any] = {}
        for name, call in calls.items():
            try:
                found[name] = error_of(call(), exact)
                torch.cuda.synchronize()
            except (RuntimeError, ValueError) as error:
                found[name] = str(error)[:300]
        return found


def _call(draft: Any, module: Any, inputs: tuple[object, ...]) -> Callable[[], object]:
    return lambda: draft.forward(module, *inputs)


def error_of(got: Any, exact: torch.Tensor) -> list[float]:
    """In place, for the difference of two large tensors takes as much memory as they do."""
    difference = got.double().sub_(exact)
    rms = difference.norm() / exact.norm()
    return [float(f"{rms.item():.3g}"), float(f"{(difference.abs_().max() / exact.abs().max()).item():.3g}")]


def kernels_of(call: Callable[[], object]) -> dict[str, float]:
    """Milliseconds of one call by kernel."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    found: dict[str, float] = {}
    for event in profiled.events() or ():
        name = event.name.removeprefix("kernel_cutlass_")[:24]
        found[name] = round(found.get(name, 0.0) + event.device_time_total / 1e3, 4)
    return found


if __name__ == "__main__":
    main()
