"""`validate` where no CUDA device is: the same checks, with the kernel on the emulated device."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch

from cutesmith_evaluator.types import Finding, Validation
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.adopted import TOO_BIG_TO_DRAW, check_on_cpu, input_bytes
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.checks_conduct import Conduct
from cutesmith_evaluator.worker.emulated import NOT_EMULATED, EmulatedCandidate
from cutesmith_evaluator.worker.emulated_inputs import reduced
from cutesmith_evaluator.worker.inputs import Inputs
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.methods import Progress
from cutesmith_evaluator.worker.reference import Reference

DEVICE = "emulated"
ARCH = "sm_90a"
_QUICK_S, _FULL_S = 60.0, 300.0  # after which no other check begins


def validate_emulated(
    reference: Reference,
    candidate: LoadedCandidate,
    patched: Path | None,
    plan: Plan,
    progress: Progress,
    conduct: Conduct,
) -> Validation:
    """The verdict on the emulated device; `ok` None where the kernel uses what is not emulated. Raises TaskError."""
    progress("importing the CuTe DSL, once")
    dsl.load()
    if (size := input_bytes(reference)) > TOO_BIG_TO_DRAW:
        return Validation(None, DEVICE, findings=(_too_big(reference, size),))
    emulated = EmulatedCandidate(candidate, ARCH)
    conduct.launches = lambda: emulated.launches
    smaller, cuts = reduced(reference, plan.groups, _support(reference, emulated))
    end = time.monotonic() + (_QUICK_S if plan.quick else _FULL_S)
    enough = lambda: time.monotonic() > end  # noqa: E731
    outcome = run_checks(smaller, emulated, torch.device("cpu"), plan, progress, conduct=conduct, enough=enough)
    outcome.checks.insert(0, f"emulated device, {ARCH}, {'; '.join(cuts) or 'all sizes as they are'}")
    if patched is not None and outcome.ok:
        progress("the patched class")
        check_on_cpu(reference, candidate, patched, outcome)
    return _verdict(outcome)


def _support(reference: Reference, candidate: EmulatedCandidate) -> Callable[[Inputs], bool]:
    """Whether the candidate takes inputs; what goes wrong there, the checks will say."""
    module = reference.build("cpu")

    def supported(inputs: Inputs) -> bool:
        try:
            with torch.no_grad():
                return candidate.supports(module, *inputs)
        except Exception:  # noqa: BLE001 - judged code may raise anything
            return False

    return supported


def _too_big(reference: Reference, size: int) -> Finding:
    """The task's file makes its inputs whole before they can be cut."""
    message = (
        f"Not run: the inputs of {reference.task.qualname} take {size / 2**30:.1f} GiB, more than the "
        f"{TOO_BIG_TO_DRAW / 2**30:.0f} GiB that the emulated device draws; make get_inputs() smaller to have it run."
    )
    return Finding("too-big-to-emulate", message, None, str(reference.file), "information")


def _verdict(outcome: Outcome) -> Validation:
    checks = tuple(outcome.checks)
    unknown = [finding for finding in outcome.findings if finding.kind == NOT_EMULATED]
    if unknown and all(finding.severity != "error" for finding in outcome.findings):
        return Validation(None, DEVICE, checks=checks, findings=(unknown[0],))
    measured = outcome.worst is not None
    precision = outcome.precision if measured or outcome.ok else None
    return Validation(outcome.ok, DEVICE, precision, outcome.error, checks, tuple(dict.fromkeys(outcome.findings)))
