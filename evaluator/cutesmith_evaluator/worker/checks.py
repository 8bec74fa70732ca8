"""All checks of one candidate on one device, and the outcome."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn

from cutesmith_evaluator.types import ErrorFigures, Finding, Precision
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks_call import DeviceFaultError
from cutesmith_evaluator.worker.checks_callers import called_otherwise
from cutesmith_evaluator.worker.checks_case import OUT_OF_TIME, TOO_BIG, Case, Result
from cutesmith_evaluator.worker.checks_compare import Comparer
from cutesmith_evaluator.worker.checks_conduct import Conduct, conduct_of
from cutesmith_evaluator.worker.checks_degenerate import Ranges
from cutesmith_evaluator.worker.checks_guard import (
    guard_findings,
    kernel_module,
    other_dtypes,
    other_in_training,
    training_findings,
)
from cutesmith_evaluator.worker.checks_layout import name_of
from cutesmith_evaluator.worker.checks_redrawn import examine_redrawn, redrawn_case
from cutesmith_evaluator.worker.checks_run import Examiner
from cutesmith_evaluator.worker.checks_state import restore_settings, settings
from cutesmith_evaluator.worker.checks_values import value_findings
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs, draw, redraw, total_bytes
from cutesmith_evaluator.worker.inputs_plan import Plan, first_rows, other_cases, own_cases
from cutesmith_evaluator.worker.numerics import Measured
from cutesmith_evaluator.worker.redrawing import floating_state
from cutesmith_evaluator.worker.reference import Reference

__all__ = ["DeviceFaultError", "Outcome", "run_checks"]

_ENOUGH_FAILURES = 3  # checks that fail before the rest is left out
_LAST = {"unsupported-inputs", OUT_OF_TIME}  # findings after which there is no use in going on
_OF_THE_REFERENCE = {"reference-raises", "random-reference", "stateful-reference"}
_FEW_BYTES = 1 << 30  # of inputs that are tried in other dtypes
_ORDER: tuple[Precision, ...] = ("kept", "as eager", "lowered")


@dataclass
class Outcome:
    """What the checks found so far. `checks`: what ran, in words."""

    checks: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    worst: Measured | None = None
    worst_label: str = ""
    precision: Precision = "kept"
    kernelbench_ok: bool = True
    compared: int = 0  # checks that came to a comparison, and found nothing wrong
    short_of_memory: bool = False  # for the comparison at the task's own sizes
    unmeasured: bool = False  # something was compared with eager alone, as the memory was too small for float64
    by_check: dict[str, Measured] = field(default_factory=dict)  # the errors that use most of the bound, by label

    @property
    def ok(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def error(self) -> ErrorFigures | None:
        """The errors of the check that comes nearest to the bound, or breaks it most."""
        return self.worst.figures(self.kernelbench_ok) if self.worst else None

    def add(self, label: str, result: Result, *, binding: bool, state_words: str = "") -> None:
        """`binding` False: what is wrong becomes a warning. `state_words`: the module's state, for `worst_label`."""
        self.checks.append(f"{label}: {result.note}" if result.note else label)
        if not binding:
            self.findings += [_warning(finding) for finding in result.findings]
            return
        self.findings += result.findings
        self.unmeasured |= result.unmeasured
        self.compared += not result.findings and not result.note
        self.kernelbench_ok &= result.kernelbench_ok
        for measured in result.measured if not result.findings else ():
            self.precision = _ORDER[max(_ORDER.index(self.precision), _ORDER.index(measured.precision))]
            if label not in self.by_check or measured.usage > self.by_check[label].usage:
                self.by_check[label] = measured
            if self.worst is None or measured.usage > self.worst.usage:
                self.worst, self.worst_label = measured, label + state_words


def run_checks(
    reference: Reference,
    candidate: LoadedCandidate,
    device: torch.device,
    plan: Plan,
    progress: Callable[[str], None],
    *,
    memory: int | None = None,
    host: int | None = None,
    conduct: Conduct | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Every check on `device`. `memory`, `host`: bytes that one float64 run may take there and on the host, by default
    what is free.
    `conduct`: made before the candidate was imported.
    `enough`: asked before each check once one has been passed; when it is true, the others are left out, and that is
    said.

    Raises TaskError when the reference cannot be used, DeviceFaultError when the device is lost.
    """
    module = reference.build(device)
    comparer = Comparer(module, device, memory, str(candidate.path), host)
    comparer.line_of = partial(candidate.line_of, module)
    conduct = conduct or conduct_of(candidate.path)
    examiner = Examiner(module, reference.file, candidate, device, comparer, conduct)
    outcome = Outcome()
    before = settings(device)
    own = draw(reference, 0, device)
    _run_cases(
        examiner, _all_cases(reference, module, own, plan, outcome, comparer.has_room), outcome, progress, enough
    )
    if comparer.no_float64:
        outcome.checks.append(f"float64 reference: none ({comparer.no_float64}); eager was the measure")
    if kernel_module(candidate) and outcome.ok and not (plan.quick or enough()):
        _check_callers(examiner, own, plan, outcome, progress)
    if kernel_module(candidate) and outcome.ok:
        progress("guards")
        _check_guards(examiner, own, outcome)
    restore_settings(before)
    outcome.findings += conduct.final_findings() if outcome.ok else ()
    outcome.findings += _unproved(outcome, reference, own) if outcome.ok else ()
    _judge_precision(outcome, str(candidate.path))
    if outcome.ok:
        _tell_degenerate(outcome, comparer.ranges, reference)
    return outcome


def _all_cases(
    reference: Reference,
    module: nn.Module,
    own: Inputs,
    plan: Plan,
    outcome: Outcome,
    measurable: Callable[[Inputs], bool],
) -> Iterator[Case | str]:
    """A candidate that is right so far is tried with other parameters too, and what follows is run with these."""
    yield from own_cases(reference, own, plan)
    if outcome.ok and any(True for _ in floating_state(module)):
        yield redrawn_case(own)
    yield from other_cases(module, own, plan, measurable)


def _run_cases(
    examiner: Examiner,
    cases: Iterable[Case | str],
    outcome: Outcome,
    progress: Callable[[str], None],
    enough: Callable[[], bool],
) -> None:
    failures = 0
    for case in cases:
        if isinstance(case, str):
            outcome.checks.append(case)
            continue
        if (outcome.compared or not case.own) and enough():
            outcome.checks.append("the rest was left out, for time")
            break
        progress(case.label)
        failures += not _checked(examiner, case, outcome)
        if case.own and examiner.comparer.float64:
            _note_reference(outcome, examiner.comparer.float64.where(case.inputs))
        if failures == _ENOUGH_FAILURES or _LAST & {finding.kind for finding in outcome.findings}:
            outcome.checks.append("the rest was left out")
            break


def _checked(examiner: Examiner, case: Case, outcome: Outcome) -> bool:
    """Whether the check found nothing wrong."""
    try:
        result = examine_redrawn(examiner, case) if case.other_state else examiner.examine(case)
    except TaskError as error:
        if case.own and error.finding.kind in _OF_THE_REFERENCE:
            raise
        late = error.finding.kind == OUT_OF_TIME and outcome.compared
        result = Result(note="not finished, the time was up") if late else Result([error.finding])
    except torch.OutOfMemoryError:
        gc.collect()
        torch.cuda.empty_cache()
        outcome.short_of_memory |= case.own
        result = Result(note="left out, the device's memory does not suffice")
    binding = not case.resized or kernel_module(examiner.candidate) is not None
    if not case.precise:
        result.measured.clear()
    state_words = "" if case.other_state else examiner.comparer.state_words
    outcome.add(case.label, result, binding=binding, state_words=state_words)
    return not (binding and result.findings)


def _check_callers(
    examiner: Examiner, own: Inputs, plan: Plan, outcome: Outcome, progress: Callable[[str], None]
) -> None:
    for each in called_otherwise(examiner, own, plan.groups):
        if isinstance(each, str):
            outcome.checks.append(each)
            continue
        caller, case = each
        progress(case.label)
        _checked(caller, case, outcome)
    if outcome.ok:
        progress("the module's numbers")
        outcome.findings += value_findings(examiner, own, plan.groups)
        outcome.checks.append("supports refuses, or forward minds, other values of the module's numbers")


def _check_guards(examiner: Examiner, own: Inputs, outcome: Outcome) -> None:
    """`own`: inputs of the task's shapes, of any values."""
    try:
        outcome.findings += guard_findings(examiner.candidate, examiner.module, own, examiner.device)
    except TaskError as error:
        outcome.findings.append(error.finding)
    outcome.checks.append("supports refuses the CPU, and inputs or parameters that require gradients")
    _check_training(examiner, own, outcome)
    few = first_rows(own, 64)
    if total_bytes(few) > _FEW_BYTES:
        outcome.checks.append("other dtypes: left out, 64 rows of the inputs are too big")
        return
    redraw(few, "uniform [0, 1)", seed=1)  # whatever a module asks of its inputs, these are likely to have
    for dtype, other in other_dtypes(few):
        _checked(examiner, Case(f"{str(dtype).removeprefix('torch.')} inputs", other, strict=True), outcome)


def _check_training(examiner: Examiner, own: Inputs, outcome: Outcome) -> None:
    try:
        trained = other_in_training(examiner.module, own, examiner.device)
        if trained is not None:
            outcome.findings += training_findings(examiner.candidate, trained, own, examiner.device)
            outcome.checks.append("supports refuses the module in training mode, where it computes something else")
    except TaskError as error:
        outcome.findings.append(error.finding)


def _unproved(outcome: Outcome, reference: Reference, own: Inputs) -> list[Finding]:
    """What to say where the memory was too small to compare at the task's own sizes, or to measure the precision."""
    if outcome.short_of_memory:
        why = "the device's memory does not hold two results beside them"
    elif outcome.unmeasured and outcome.worst is None:
        why = "a float64 run on them fits neither the device nor the host, and no smaller size was measured"
    else:
        return []
    size = f"the inputs of {reference.task.qualname} take {total_bytes(own) / 2**30:.1f} GiB"
    message = f"Not validated: {size}, and {why}; make get_inputs() smaller."
    return [Finding(TOO_BIG, message, None, str(reference.file), "information")]


def _tell_degenerate(outcome: Outcome, ranges: Ranges, reference: Reference) -> None:
    """Says where the module's result is one value throughout: there it does not tell right from wrong."""
    number = len(ranges.all)
    for place, value in ranges.on_own_inputs().items():
        words = f"is {value:.6g} throughout on the task's own inputs, which proves little; on others it is not"
        outcome.checks.append(f"degenerate: {name_of(place, number).lower()} {words}")
    for place, value in ranges.always().items():
        message = (
            f"{name_of(place, number)} of {reference.task.qualname} was {value:.6g} throughout, for all inputs tried: "
            f"a kernel that writes just this passes; check that the module is what you mean."
        )
        outcome.findings.append(Finding("degenerate-task", message, None, str(reference.file), "information"))


def _note_reference(outcome: Outcome, where: str | None) -> None:
    words = f"float64 reference: {where}"
    if where and words not in outcome.checks:
        outcome.checks.append(words)


_FAR = 1000.0  # times eager's error: it may as well be another function
_MAYBE_WRONG = "; as far off as this, look for a wrong constant or formula, too"


def _judge_precision(outcome: Outcome, file: str) -> None:
    if outcome.precision != "lowered" or outcome.worst is None:
        return
    worst, figures = outcome.worst, outcome.worst.figures(outcome.kernelbench_ok)
    seen = f" ({worst.rounding})" if worst.rounding else ""
    far = f"{figures.candidate:.2g}, {figures.ratio:.3g} times eager's {figures.eager:.2g}{seen}"
    hidden = worst.small if worst.as_a_whole != "lowered" else None
    what = f"{hidden}" if hidden else f"the {figures.figure} error against float64 is {far}"
    message = (
        f"Precision is lowered: on {outcome.worst_label} {what}; keep the reference's dtype throughout and use exact "
        f"functions{_MAYBE_WRONG if figures.ratio > _FAR else ''}."
    )
    outcome.findings.append(Finding("lowered-precision", message, None, file))


def _warning(finding: Finding) -> Finding:
    return Finding(finding.kind, finding.message, finding.line, finding.file, "warning")
