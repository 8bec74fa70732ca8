"""`validate`: is the candidate right, and how precise, on the device of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from cutesmith_evaluator.types import Finding, Task, Validation
from cutesmith_evaluator.worker.adopted import check_on_cpu, check_on_device
from cutesmith_evaluator.worker.candidate import LoadedCandidate, load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.checks_case import OUT_OF_TIME, TOO_BIG
from cutesmith_evaluator.worker.checks_conduct import Conduct, conduct_of
from cutesmith_evaluator.worker.counted_calls import Calls, counting
from cutesmith_evaluator.worker.emulated import NOT_EMULATED
from cutesmith_evaluator.worker.emulated_validation import ARCH, DEVICE, Request, validate_emulated
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.methods import Params, Progress
from cutesmith_evaluator.worker.reference import Reference, load_reference

NO_DEVICE = Finding(
    "no-device",
    "Not run: no device. Device auto validates on the CUDA device, or where there is none on the emulated one.",
    severity="information",
)


def validate(params: Params, progress: Progress) -> Validation:
    """Params: task, candidate, patched (path or None), quick, device ("auto", "cuda", "emulated", "none"),
    dynamic_dims; for the emulated device arch and time_s.

    "auto" is the CUDA device where there is one, else the emulated one.

    Raises DeviceFaultError when the device is lost: this process is then of no further use.
    """
    device = chosen_device(params)
    emulated = is_emulated(params)
    patched = Path(params["patched"]) if params.get("patched") else None
    if device is None and patched is None and not emulated:
        return Validation(None, "none", findings=(NO_DEVICE,))
    try:
        reference = load_reference(Task(**params["task"]))
        conduct = conduct_of(Path(params["candidate"]))
        with _counted(conduct, device):
            candidate = load_candidate(Path(params["candidate"]), reference)
            conduct.require_integrity("being imported")
            if emulated:
                return validate_emulated(reference, candidate, _emulated_request(params, patched, progress), conduct)
            if device is None:
                assert patched is not None
                return _adopted_without_device(reference, candidate, patched)
            return _on_device(reference, candidate, patched, device, _plan(params), progress, conduct)
    except TaskError as error:
        if emulated:
            ok = None if error.finding.kind in (NOT_EMULATED, OUT_OF_TIME, "no-dsl") else False
            return Validation(ok, DEVICE, findings=(error.finding,))
        return Validation(None if device is None else False, device_name(device), findings=(error.finding,))


@contextmanager
def _counted(conduct: Conduct, device: torch.device | None) -> Iterator[None]:
    """Inside, launches on a CUDA device are counted; the emulated one counts its own."""
    if device is None or not conduct.declared.has_kernels:
        yield
        return
    calls = Calls()
    conduct.launches = calls.count
    with counting(calls):
        yield


def chosen_device(params: Params) -> torch.device | None:
    """The CUDA device to run on; None without one, or where the request wants none."""
    if params.get("device", "auto") in ("none", "emulated") or not torch.cuda.is_available():
        return None
    return torch.device("cuda", torch.cuda.current_device())


def is_emulated(params: Params) -> bool:
    wanted = params.get("device", "auto")
    return wanted == "emulated" or (wanted == "auto" and not torch.cuda.is_available())


def device_name(device: torch.device | None) -> str:
    return torch.cuda.get_device_name(device) if device else "none"


def _emulated_request(params: Params, patched: Path | None, progress: Progress) -> Request:
    return Request(patched, _plan(params), progress, params.get("arch") or ARCH, params.get("time_s"))


def _plan(params: Params) -> Plan:
    groups = tuple(tuple((place, dim) for place, dim in group) for group in params.get("dynamic_dims") or ())
    return Plan(bool(params.get("quick")), groups)


def _on_device(
    reference: Reference,
    candidate: LoadedCandidate,
    patched: Path | None,
    device: torch.device,
    plan: Plan,
    progress: Progress,
    conduct: Conduct,
) -> Validation:
    outcome = run_checks(reference, candidate, device, plan, progress, conduct=conduct)
    torch.cuda.empty_cache()
    if patched is not None and outcome.ok:
        progress("the patched class")
        check_on_device(reference, candidate, patched, device, outcome)
    measured = outcome.worst is not None
    too_big = any(finding.kind == TOO_BIG for finding in outcome.findings)
    return Validation(
        None if too_big and outcome.ok else outcome.ok,
        device_name(device),
        outcome.precision if measured or outcome.ok else None,
        outcome.error,
        tuple(outcome.checks),
        tuple(outcome.findings),
    )


def _adopted_without_device(reference: Reference, candidate: LoadedCandidate, patched: Path) -> Validation:
    """The fallback to the original code is all that can be tried; a failure there is a failure."""
    outcome = Outcome()
    check_on_cpu(reference, candidate, patched, outcome)
    verdict = Validation(None, "none", checks=tuple(outcome.checks), findings=(*outcome.findings, NO_DEVICE))
    return verdict if outcome.ok else replace(verdict, ok=False)
