"""What a candidate is known by after each request to the evaluator. Pure."""

from __future__ import annotations

from dataclasses import replace

from cutesmith_evaluator.speedup import speedup
from cutesmith_evaluator.types import Candidate, Compilation, Confirmation, Finding, Stage, Timing, Validation


def failed(candidate: Candidate, stage: Stage, *findings: Finding) -> Candidate:
    return replace(candidate, stage=stage, ok=False, findings=(*candidate.findings, *findings))


def compiled(candidate: Candidate, result: Compilation) -> Candidate:
    return replace(
        candidate,
        stage="compile",
        ok=None if result.ok else False,
        compile_s=result.seconds,
        resources=result.resources,
        findings=(*candidate.findings, *result.findings),
    )


def validated(candidate: Candidate, result: Validation, *, lowered_is_fine: bool = False) -> Candidate:
    """`lowered_is_fine`: the user takes a lower precision than the module's for this class; it stays said."""
    if lowered_is_fine and _is_only_lowered(result):
        result = replace(result, ok=True, findings=tuple(map(_as_warning, result.findings)))
    return replace(
        candidate,
        stage="validate",
        ok=result.ok,
        precision=result.precision,
        error=result.error,
        device=candidate.device if result.ok is None else result.device,
        profile=result.profile or candidate.profile,
        findings=tuple(dict.fromkeys((*candidate.findings, *result.findings))),
    )


def confirmed(candidate: Candidate, result: Confirmation) -> Candidate:
    """Of a candidate that was right so far. Where it is not confirmed, it goes back to being validated."""
    stage: Stage = candidate.stage if result.ok else "validate"
    return replace(candidate, stage=stage, ok=result.ok, findings=(*candidate.findings, *result.findings))


def _is_only_lowered(result: Validation) -> bool:
    errors = {finding.kind for finding in result.findings if finding.severity == "error"}
    return result.precision == "lowered" and errors == {"lowered-precision"}


def _as_warning(finding: Finding) -> Finding:
    return replace(finding, severity="warning") if finding.kind == "lowered-precision" else finding


def timed(candidate: Candidate, result: Timing) -> Candidate:
    """A timing without the candidate's arm is void: its findings (other values, clocks apart) take the verdict back."""
    is_void = median_ms(result) is None
    return replace(
        candidate,
        stage="time",
        ok=False if is_void else candidate.ok,
        timing=None if is_void else result,
        speedup=None if is_void else speedup(result),
        findings=(*candidate.findings, *result.findings),
    )


def median_ms(timing: Timing, arm: str = "candidate") -> float | None:
    return next((one.median_ms for one in timing.arms if one.name == arm), None)
