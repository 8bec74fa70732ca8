"""`cutesmith retune FILE::Class`: the search once more on this device, held against the kernel that the class has."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from cutesmith_agent.job import Job
from cutesmith_evaluator.client import Worker, WorkerError
from cutesmith_evaluator.types import Candidate
from cutesmith_evaluator.units import duration
from cutesmith_server import wording
from cutesmith_server.cli.deciding import note_decision
from cutesmith_server.cli.jobs import interpreter, job_for
from cutesmith_server.cli.output import console, from_here, print_json
from cutesmith_server.cli.running import run_job
from cutesmith_server.cli.target import Target, read_target
from cutesmith_server.drift import content_id
from cutesmith_server.errors import RefusedError
from cutesmith_server.report import Report, read_report

_GAIN = 1.02  # from which another kernel is worth a change


def retune(options: argparse.Namespace) -> int:
    """0 where there is a verdict: a faster kernel is on offer then, or the present one stays."""
    target = read_target(options.target)
    found = target.outline.named(target.qualname)
    if found is None or found.kernel is None:
        how = f"cutesmith optimize {options.target} makes one"
        raise RefusedError(f"{target.qualname} has no kernel to tune again: {how}.")
    kernel = target.path.with_name(f"{found.kernel}.py")
    _require_device(options)
    present = _report(job_for("check", target, options, [kernel]), options)
    made = _report(replace(job_for("optimize", target, options), proposer="recipes"), options)
    gain = _gain(present.best_candidate, made.best_candidate)
    is_faster = gain is not None and gain >= _GAIN
    if not is_faster:  # the user keeps what they have: nothing new is on offer
        digest = target.outline.digest(target.qualname)
        note_decision("accepted", target, candidate=content_id(kernel), class_hash=digest, kernel=kernel)
    said = _said(target, present, made, gain, is_faster=is_faster)
    if options.json:
        print_json({"gain": gain, "faster": is_faster, "said": said, "present": _ms(present), "made": _ms(made)})
    else:
        console().print(said, markup=False, soft_wrap=True)
    return 0 if gain is not None else 3


def _require_device(options: argparse.Namespace) -> None:
    python = interpreter(options)
    refusal = f"Tuning is measuring on a CUDA device, and {python} has none: run this where it has."
    if options.device in ("none", "emulated"):
        raise RefusedError("Tuning is measuring on a CUDA device: leave --device out, or name cuda.")
    try:
        with Worker(Path(python)) as worker:
            device = worker.hello().device
    except WorkerError as error:
        raise RefusedError(str(error)) from None
    if device == "none":
        raise RefusedError(refusal)


def _report(job: Job, options: argparse.Namespace) -> Report:
    done, _ = run_job(job, quiet=options.json, waits=not options.no_wait)
    return read_report(done.report)


def _gain(present: Candidate | None, made: Candidate | None) -> float | None:
    """How many times faster the new one is; each was timed in a process of its own."""
    before, after = _median(present), _median(made)
    return before / after if before and after else None


def _median(candidate: Candidate | None) -> float | None:
    timing = candidate.timing if candidate and candidate.ok else None
    return next((arm.median_ms for arm in timing.arms if arm.name == "candidate"), None) if timing else None


def _ms(report: Report) -> float | None:
    return _median(report.best_candidate)


def _said(target: Target, present: Report, made: Report, gain: float | None, *, is_faster: bool) -> str:
    where = f"{from_here(target.path)}::{target.qualname}"
    if gain is None:
        return f"{where} cannot be compared: the present kernel: {present.stopped} A new one: {made.stopped}"
    before, after = _ms(present), _ms(made)
    assert before
    assert after
    figures = f"{duration(before)} now, {duration(after)} with the best that was found ({wording.ratio(gain)})"
    if is_faster:
        return f"{where}: {figures}. To take it: cutesmith accept {where}"
    return f"{where}: {figures}. The kernel that it has stays."
