"""`time`: how fast the candidate is beside eager and torch.compile, on the device of this machine."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import torch

from cutesmith_evaluator.types import Finding, Task, Timing
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks_conduct import conduct_of
from cutesmith_evaluator.worker.clock import Clock
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import draw
from cutesmith_evaluator.worker.methods import Params, Progress
from cutesmith_evaluator.worker.reference import load_reference
from cutesmith_evaluator.worker.sensors import Sensors, sensors
from cutesmith_evaluator.worker.timing_arms import Subject, copy_of, working_calls
from cutesmith_evaluator.worker.timing_checks import (
    clock_finding,
    condition_findings,
    output_finding,
    overhead_finding,
    steady_finding,
)
from cutesmith_evaluator.worker.timing_launches import launch_times
from cutesmith_evaluator.worker.timing_sampling import Sampled, sample_arms
from cutesmith_evaluator.worker.validate import chosen_device, device_name

ARM_S, QUICK_ARM_S = 2.0, 0.3  # of sampling
_NO_DEVICE = Finding(
    "no-device", "Not timed: no device. Timing needs a CUDA device that PyTorch can use.", severity="information"
)


def time_arms(params: Params, progress: Progress) -> Timing:
    """Params: task, candidate, arms, quick, patched (path or None: its class is timed too), device.

    `arms` is empty when the candidate cannot be timed or the timing is void. Raises DeviceFaultError when the device
    is lost.
    """
    device = chosen_device(params)
    if device is None:
        return Timing("none", (), 0.0, 0, 0.0, 0.0, (_NO_DEVICE,))
    clock, read = Clock(device), sensors(device)  # before the candidate is imported
    try:
        reference = load_reference(Task(**params["task"]))
        conduct = conduct_of(Path(params["candidate"]))
        candidate = load_candidate(Path(params["candidate"]), reference)
        conduct.require_integrity("being imported")
        subject = Subject(reference, candidate, reference.build(device), draw(reference, 0, device), device)
        with torch.no_grad():
            timing = _timed(clock, read, subject, params, progress)
        conduct.require_integrity("being timed")
        return timing
    except TaskError as error:
        return Timing(device_name(device), (), 0.0, 0, 0.0, 0.0, (error.finding,))
    finally:
        torch._dynamo.reset()


def _timed(clock: Clock, read: Sensors | None, subject: Subject, params: Params, progress: Progress) -> Timing:
    progress("warming up")
    subject.warm_up()
    before = subject.fingerprints()
    task_bytes = subject.least_bytes()
    torch.cuda.empty_cache()
    patched = Path(params["patched"]) if params.get("patched") else None
    calls, findings = working_calls(subject, _wanted(params, patched), patched)
    copied_bytes, copy = copy_of(task_bytes, subject.device)
    progress("sampling")
    arm_s = QUICK_ARM_S if params.get("quick") else ARM_S
    sampled = sample_arms(clock, {**calls, "copy": copy}, arm_s=arm_s, sensors=read)
    progress("cross-checking")
    arms = sampled.arms()
    copy_gbps = copied_bytes / statistics.median(sampled.samples["copy"]) / 1e6
    void = [
        clock_finding(clock, calls["candidate"], arms["candidate"].median_ms, str(subject.candidate.path)),
        output_finding(subject, before),
    ]
    findings += [finding for finding in void if finding]
    findings += [overhead_finding(clock, subject, lambda: subject.module(*subject.inputs))]
    findings += [*condition_findings(arms), *steady_finding(sampled.is_steady)]
    if any(void):
        return Timing(device_name(subject.device), (), copy_gbps, task_bytes, 0.0, 0.0, tuple(findings))
    timing = _timing(subject, sampled, copy_gbps, task_bytes, findings)
    medians = {name: arm.median_ms for name, arm in arms.items()}
    return timing if params.get("quick") else replace(timing, launches=launch_times(clock, calls, medians))


def _wanted(params: Params, patched: Path | None) -> list[str]:
    """The arms asked for, the candidate always; eager never without its control."""
    names = ["candidate", *(name for name in params.get("arms") or () if name != "candidate")]
    names += ["control"] if "eager" in names and "control" not in names else []
    return [*names, "adopted", "adopted-compile"] if patched else names


def _timing(subject: Subject, sampled: Sampled, copy_gbps: float, task_bytes: int, findings: list[Finding]) -> Timing:
    arms = sampled.arms()
    return Timing(
        device_name(subject.device),
        tuple(arms.values()),
        copy_gbps,
        task_bytes,
        task_bytes / arms["candidate"].median_ms / 1e6 / copy_gbps,
        sampled.noise(),
        tuple(findings),
        sampled.ratios(),
    )
