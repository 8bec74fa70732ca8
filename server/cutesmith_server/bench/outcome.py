"""What came of one task: a record of plain values, as the results file and the JSON have it."""

from __future__ import annotations

from typing import Any, Literal

from cutesmith_evaluator.types import Candidate, Finding, Timing
from cutesmith_server.bench.tasks import BenchTask
from cutesmith_server.report import Report

Outcome = Literal["right", "right, not timed", "compiled only", "wrong", "no kernel", "failed"]
Record = dict[str, Any]
_NOT_RUN = ("too-big-to-emulate", "not-emulated", "out-of-time", "too-big-to-validate")
_IN_PART = "emulated-in-part"


def record_of(task: BenchTask, report: Report, seconds: float) -> Record:
    """`report`: the job's."""
    judged = report.judged
    timing = judged.timing if judged else None
    return _identity(task) | {
        "outcome": _outcome(report, judged),
        "ok": judged.ok if judged else False,
        "precision": judged.precision if judged else None,
        "error_ratio": judged.error.ratio if judged and judged.error else None,
        "speedup": {"eager": _ratio(timing, "eager"), "compile": _ratio(timing, "compile")},
        "times_ms": _times(timing),
        "roofline_fraction": timing.fraction_of_copy if timing else None,
        "estimate_ms": report.estimate_ms,
        "device": timing.device if timing else (judged.device if judged else None) or report.device,
        "remark": _remark(report, judged),
        "seconds": round(seconds, 1),
    }


def failure(task: BenchTask, message: str, seconds: float) -> Record:
    """A job that never reported."""
    return _identity(task) | {
        "outcome": "failed",
        "ok": False,
        "precision": None,
        "error_ratio": None,
        "speedup": {"eager": None, "compile": None},
        "times_ms": {},
        "roofline_fraction": None,
        "estimate_ms": None,
        "device": None,
        "remark": message,
        "seconds": round(seconds, 1),
    }


def _identity(task: BenchTask) -> Record:
    return {
        "key": task.key,
        "level": task.level,
        "id": task.number,
        "name": task.name,
        "file": str(task.file),
        "class": task.qualname,
    }


def _outcome(report: Report, judged: Candidate | None) -> Outcome:
    if judged is None:
        return "no kernel"
    if judged.ok is None:
        return "compiled only"
    if not judged.ok or report.best is None:
        return "wrong"
    return "right" if judged.timing else "right, not timed"


def _remark(report: Report, judged: Candidate | None) -> str:
    """What a reader must know of the verdict, in one sentence; "" where there is nothing to add."""
    findings = (*(judged.findings if judged else ()), *report.findings)
    limits = [finding for finding in findings if finding.kind in (*_NOT_RUN, _IN_PART)]
    errors = [finding for finding in findings if finding.severity == "error"]
    chosen: list[Finding] = limits if judged is not None and judged.ok is not False else errors or limits
    if chosen:
        return chosen[0].message
    return "" if judged is not None and judged.timing else report.stopped


def _ratio(timing: Timing | None, arm: str) -> float | None:
    """The paired ratio of an arm over the candidate, as measured: also where it is within the noise."""
    if timing is None:
        return None
    return next((r.ratio for r in timing.ratios if (r.arm, r.base) == (arm, "candidate")), None)


def _times(timing: Timing | None) -> dict[str, Any]:
    """Median and interval of every arm."""
    if timing is None:
        return {}
    return {
        arm.name: {"median": arm.median_ms, "low": arm.low_ms, "high": arm.high_ms, "samples": arm.samples}
        for arm in timing.arms
    }
