"""Inputs that a real run had: the task's own where its file names none, and what every kernel is validated on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cutesmith_agent.store.captures import CapturedCall
from cutesmith_agent.subject import Subject
from cutesmith_agent.trial import Bench
from cutesmith_agent.verdicts import failed
from cutesmith_evaluator.errors import WorkerError, WorkerUnavailable
from cutesmith_evaluator.types import Candidate, Finding, Inspection, Validation

_NOT_TAKEN = "unsupported-inputs"
_NOT_THE_KERNELS_FAULT = ("constructor-raised", "inputs-raised", "reference-raises", "no-inputs", "lazy-module")


def captured_calls(bench: Bench, subject: Subject) -> tuple[CapturedCall, ...]:
    """The most frequent first."""
    found = bench.journal.store.captures.of(str(subject.file), subject.qualname)
    return found[0].usable if found else ()


def inspected(bench: Bench) -> tuple[Bench, Inspection]:
    """The inspection, by the file's own inputs or, where it has none, by the first captured ones that can be traced."""
    first = bench.evaluator.inspect(bench.task, on_progress=bench.journal.progress)
    if first.graph is not None or not any(finding.kind == "no-inputs" for finding in first.findings):
        return bench, first
    found = first
    for number, call in enumerate(bench.captured):
        tried = replace(bench, task=replace(bench.task, captured=call.text))
        found = bench.evaluator.inspect(tried.task, on_progress=bench.journal.progress)
        if found.graph is not None:
            others = bench.captured[:number] + bench.captured[number + 1 :]
            told = replace(found, findings=(*found.findings, _chosen(call, bench.captured)))
            return replace(tried, captured=others), told
    return bench, found


def validate_captured(bench: Bench, candidate: Candidate) -> Candidate:
    """The candidate on every other captured signature: wrong on one, it failed. One that it does not take is told."""
    if not candidate.ok or not bench.captured:
        return candidate
    right, left, unbuilt = 0, [], []
    for call, verdict in _verdicts(bench, candidate):
        kinds = {finding.kind for finding in verdict.findings if finding.severity == "error"}
        if verdict.ok:
            right += 1
        elif _NOT_TAKEN in kinds:
            left.append(call)
        elif verdict.ok is None or kinds & set(_NOT_THE_KERNELS_FAULT):
            unbuilt.append(call)
        else:
            return failed(candidate, "validate", *(_placed(call, finding) for finding in verdict.findings))
    return replace(candidate, findings=(*candidate.findings, *_summary(bench, right, left, unbuilt)))


def _verdicts(bench: Bench, candidate: Candidate) -> Iterator[tuple[CapturedCall, Validation]]:
    assert candidate.path is not None
    for number, call in enumerate(bench.captured, start=1):
        which = f"captured inputs {number} of {len(bench.captured)}: {call.words}"
        bench.journal.stage("validate", which, candidate.id)
        yield call, _verdict(bench, Path(candidate.path), call)


def _verdict(bench: Bench, kernel: Path, call: CapturedCall) -> Validation:
    """A worker that died or hung over it is the candidate's fault."""
    try:
        return bench.evaluator.validate(
            replace(bench.task, captured=call.text),
            kernel,
            quick=True,
            device="emulated" if bench.emulates else bench.device,
            arch=bench.archs[0],
            on_progress=bench.journal.progress,
        )
    except WorkerUnavailable:
        raise
    except WorkerError as error:
        return Validation(False, bench.environment.device, findings=(error.finding,))


def _chosen(call: CapturedCall, calls: tuple[CapturedCall, ...]) -> Finding:
    total = sum(each.calls for each in calls)
    message = (
        f"Inputs as captured: {call.words}, in {call.calls:,} of {total:,} calls "
        f"({len(calls)} signature{'s' if len(calls) > 1 else ''})."
    )
    return Finding("captured-inputs", message, severity="information")


def _placed(call: CapturedCall, finding: Finding) -> Finding:
    return replace(finding, message=f"On captured inputs {call.words}: {finding.message}")


def _summary(bench: Bench, right: int, left: list[CapturedCall], unbuilt: list[CapturedCall]) -> Iterator[Finding]:
    number = len(bench.captured)
    if right:
        yield Finding(
            "captured-right", f"Right on {right} of {number} other captured signatures.", severity="information"
        )
    if left:
        what = f"The original code runs for {_some(left)}: the kernel does not take {_them(left)}."
        yield Finding("captured-not-taken", what, severity="information")
    if unbuilt:
        what = f"Not validated on {_some(unbuilt)}: {_them(unbuilt)} could not be made again or run here."
        yield Finding("captured-not-run", what, severity="information")


def _them(calls: list[CapturedCall]) -> str:
    return "them" if len(calls) > 1 else "it"


def _some(calls: list[CapturedCall]) -> str:
    """The most frequent, and how many more."""
    more = f" and {len(calls) - 3} more captured signatures" if len(calls) > 3 else ""
    return "captured " + "; ".join(call.words for call in calls[:3]) + more
