"""One case of products.py on a CUDA device: says what it is at, and leaves a line of results."""

from __future__ import annotations

import copy
import fcntl
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SAMPLE_S = 0.15  # of timing per schedule
BASELINES = ("eager", "torch.compile")
Call = Callable[[], Any]


def run_case(place: Path, results: Path, skip: list[str]) -> None:
    """`skip`: schedules that hang, by their numbers."""
    import torch

    about = json.loads((place / "about.json").read_text())
    print(f"starting {about['case']}", flush=True)
    torch.set_grad_enabled(False)
    calls = _calls(place, about, skip)
    print("compiled; waiting for the device", flush=True)
    with (place.parent / "device.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        errors = _errors(calls)
        ms = _medians({name: call for name, call in calls.items() if not isinstance(errors[name], str)})
        best = min((name for name in ms if name not in BASELINES), key=ms.__getitem__, default=None)
        kernels = _kernels(calls[best]) if best else None
    line = {
        "case": about["case"],
        "device": torch.cuda.get_device_name(0),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "errors": errors | dict.fromkeys(skip, "hang"),
        "ms": ms,
        "speedup": {name: round(ms[name] / ms[best], 2) for name in BASELINES} if best else None,
        "schedule": about["schedules"][int(best)] if best else None,
        "kernels": kernels,
    }
    with results.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def _calls(place: Path, about: dict[str, Any], skip: list[str]) -> dict[str, Call]:
    """Eager's and each schedule's, on the same inputs."""
    import torch

    from cutesmith_evaluator.types import Task
    from cutesmith_evaluator.worker.candidate import load_candidate
    from cutesmith_evaluator.worker.inputs import draw
    from cutesmith_evaluator.worker.reference import load_reference

    device = torch.device("cuda", 0)
    reference = load_reference(Task(str(place / about["file"]), about["qualname"]))
    module, inputs = reference.build(device), draw(reference, 0, device)
    print("inputs are there", flush=True)

    def exact() -> Any:
        doubled = (x.double() if isinstance(x, torch.Tensor) else x for x in inputs)
        return copy.deepcopy(module).double()(*doubled)

    compiled = torch.compile(module)
    compiled(*inputs)
    print("torch.compile is done", flush=True)
    calls: dict[str, Call] = {
        "exact": exact,
        "eager": lambda: module(*inputs),
        "torch.compile": lambda: compiled(*inputs),
    }
    for k in map(str, range(len(about["schedules"]))):
        if k not in skip:
            draft = load_candidate(place / f"draft_{k}_cute.py", reference)
            begun = time.perf_counter()
            draft.warm_up(module, *inputs)
            print(f"schedule {k} compiled in {time.perf_counter() - begun:.1f} s", flush=True)
            calls[k] = lambda draft=draft: draft.forward(module, *inputs)
    return calls


def _errors(calls: dict[str, Call]) -> dict[str, Any]:
    """rms and max against float64, of eager and of each schedule; the message of a schedule that fails."""
    import torch

    exact = calls.pop("exact")()
    found: dict[str, Any] = {}
    for name, call in calls.items():
        print(f"launching {name}", flush=True)
        try:
            found[name] = _error(call(), exact)
        except (RuntimeError, ValueError) as error:
            found[name] = str(error)[:300]
        torch.cuda.synchronize()
        print(f"ran {name}: {found[name]}", flush=True)
    return found


def _error(got: torch.Tensor, exact: torch.Tensor) -> list[float]:
    """In place, for the difference of two large tensors takes as much memory as they do."""
    difference = got.double().sub_(exact)
    rms = difference.norm() / exact.norm()
    return [float(f"{rms.item():.3g}"), float(f"{(difference.abs_().max() / exact.abs().max()).item():.3g}")]


def _medians(calls: dict[str, Call]) -> dict[str, float]:
    import torch

    from cutesmith_evaluator.worker.clock import Clock
    from cutesmith_evaluator.worker.timing_sampling import sample_arms

    sampled = sample_arms(Clock(torch.device("cuda", 0)), calls, arm_s=SAMPLE_S)
    print("done with timing", flush=True)
    return {name: round(statistics.median(samples), 4) for name, samples in sampled.samples.items()}


def _kernels(call: Call) -> dict[str, float]:
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
