"""`validate` where no CUDA device is: the same checks, with the kernel on the emulated device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from cutesmith_evaluator.emulator.properties import properties_of
from cutesmith_evaluator.types import Finding, Validation
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.adopted import check_on_cpu
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.checks_case import OUT_OF_TIME, TOO_BIG
from cutesmith_evaluator.worker.checks_conduct import Conduct
from cutesmith_evaluator.worker.checks_guard import kernel_module
from cutesmith_evaluator.worker.emulated import NOT_EMULATED, EmulatedCandidate
from cutesmith_evaluator.worker.emulated_inputs import reduced, without_memory
from cutesmith_evaluator.worker.emulated_sizes import ELEMENTS
from cutesmith_evaluator.worker.emulated_time import Pace
from cutesmith_evaluator.worker.inputs import Inputs, tensors, total_bytes
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.kernel_names import function_name
from cutesmith_evaluator.worker.memory import free_memory
from cutesmith_evaluator.worker.methods import Progress
from cutesmith_evaluator.worker.reference import Reference

DEVICE = "emulated"
ARCH = "sm_90a"  # where the one asked for is not emulated
_QUICK, _FULL = (10.0, 60.0), (20.0, 120.0)  # seconds after which no other check begins, and a kernel is stopped
IN_PART = "emulated-in-part"
_COPIES = 6  # of the inputs: what drawing, running and comparing hold at once, results included
_SHARE = 0.5  # of the free memory that they may take


def validate_emulated(
    reference: Reference, candidate: LoadedCandidate, request: Request, conduct: Conduct
) -> Validation:
    """The verdict on the emulated device; `ok` None where nothing can be said. Raises TaskError."""
    dsl.load()
    arch = request.arch if properties_of(request.arch) is not None else ARCH
    pace = Pace(request.progress, *(_limits(request)))
    emulated = EmulatedCandidate(candidate, arch, pace.between)
    conduct.launches = lambda: emulated.launches
    whole = without_memory(reference)
    whole = reference.inputs(0, "cpu") if whole is None else whole
    groups = request.plan.groups if kernel_module(candidate) is not None else ()  # a ModelNew is for its sizes alone
    module = reference.build("cpu")
    smaller, inputs, cuts = reduced(reference, whole, groups, support(module, emulated), module)
    free = free_memory()
    if total_bytes(inputs) * _COPIES > free * _SHARE:
        return Validation(None, DEVICE, findings=(_too_big(reference, inputs, free),))
    plan = replace(request.plan, elements=max(4 * ELEMENTS, *(tensor.numel() for tensor in tensors(inputs)), 0))
    memory = int(free * _SHARE)
    outcome = run_checks(
        smaller,
        emulated,
        torch.device("cpu"),
        plan,
        pace.check,
        conduct=conduct,
        memory=memory,
        enough=pace.enough,
    )
    _tell_parts(outcome, arch, [*cuts, *_parts(emulated), *_cut_short(outcome)])
    if request.patched is not None and outcome.ok:
        request.progress("the patched class")
        check_on_cpu(smaller, candidate, request.patched, outcome)
    return replace(_verdict(outcome), profile=emulated.profile)


@dataclass(frozen=True)
class Request:
    """`time_s`: after which a kernel is stopped; None: what is usual."""

    patched: Path | None
    plan: Plan
    progress: Progress
    arch: str = ARCH
    time_s: float | None = None


def _limits(request: Request) -> tuple[float, float]:
    begin, end = _QUICK if request.plan.quick else _FULL
    return (begin, end) if request.time_s is None else (min(begin, request.time_s), request.time_s)


def _parts(candidate: EmulatedCandidate) -> list[str]:
    """What of each kernel ran, where blocks were left out."""
    return [
        f"of {function_name(kernel, candidate.path)} {ran} of {blocks} blocks (the first, the last and a spread)"
        for kernel, (ran, blocks) in candidate.device.parts.items()
        if kernel not in candidate.device.whole
    ]


def _tell_parts(outcome: Outcome, arch: str, parts: Sequence[str]) -> None:
    """Says in the first of the checks what ran, and in a finding what did not."""
    outcome.checks.insert(0, f"emulated device, {arch}, {'; '.join(parts) or 'all of it'}")
    if parts and outcome.compared:
        outcome.findings.append(Finding(IN_PART, f"Emulated in part: {'; '.join(parts)}.", severity="information"))


def _cut_short(outcome: Outcome) -> list[str]:
    """Says so where the time did not suffice for all checks."""
    late = any(check.endswith(("for time", "the time was up")) for check in outcome.checks)
    number = "1 check" if outcome.compared == 1 else f"{outcome.compared} checks"
    return [f"{number}, for there was no time for more"] if late else []


def support(module: nn.Module, candidate: LoadedCandidate) -> Callable[[Inputs], bool]:
    """Whether the candidate takes inputs for the module; what goes wrong there, the checks will say."""

    def supported(inputs: Inputs) -> bool:
        try:
            with torch.no_grad():
                return candidate.supports(module, *inputs)
        except BaseException:  # noqa: BLE001 - judged code may raise anything
            return False

    return supported


def _too_big(reference: Reference, inputs: Inputs, free: int) -> Finding:
    """The task does not fit the memory, at the smallest sizes that the kernel takes."""
    message = (
        f"Not run: the inputs of {reference.task.qualname} take {total_bytes(inputs) / 2**30:.1f} GiB at the smallest "
        f"sizes that this kernel takes, and their validation {_COPIES} times as much, of {free / 2**30:.1f} GiB free; "
        "make get_inputs() smaller to have it run."
    )
    return Finding("too-big-to-emulate", message, None, str(reference.file), "information")


def _verdict(outcome: Outcome) -> Validation:
    checks = tuple(outcome.checks)
    unknown = [finding for finding in outcome.findings if finding.kind in (NOT_EMULATED, OUT_OF_TIME, TOO_BIG)]
    if unknown and all(finding.severity != "error" for finding in outcome.findings):
        return Validation(None, DEVICE, checks=checks, findings=(unknown[0],))
    measured = outcome.worst is not None
    precision = outcome.precision if measured or outcome.ok else None
    return Validation(outcome.ok, DEVICE, precision, outcome.error, checks, tuple(dict.fromkeys(outcome.findings)))
