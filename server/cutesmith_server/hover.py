"""The hover on a class's name: its state, errors against fp64, timing, what ran where, and when the kernel runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_evaluator.units import duration
from cutesmith_server import wording
from cutesmith_server.conditions import reasons, reasons_of_file
from cutesmith_server.jobs import ClassKey
from cutesmith_server.views import ClassView

if TYPE_CHECKING:
    from cutesmith_agent.store.captures import Capture
    from cutesmith_evaluator.types import Candidate, Timing
    from cutesmith_server.documents import Document
    from cutesmith_server.report import Report
    from cutesmith_server.studio import Studio

_STATES = {
    "idle": "no CuTe kernel yet",
    "running": "a CuTe kernel is being made",
    "paused": "its CuTe kernel is half made",
    "ready": "a CuTe kernel is ready",
    "compiled": "a CuTe kernel was compiled, not run",
    "failed": "no CuTe kernel",
    "accepted": "has a CuTe kernel",
    "stale": "its CuTe kernel is out of date",
    "cancelled": "cancelled",
    "reference": "a reference was written from its description, and waits for your approval",
}


def hover(studio: Studio, document: Document, position: types.Position) -> types.Hover | None:
    """The hover at a position; None away from the names of module classes."""
    text = document.text
    offset = text.offset_at(position)
    for found in studio.outline(document.path).classes:
        name = found.name_range
        if name.start <= offset <= name.end:
            view = studio.view(ClassKey(document.path, found.qualname))
            kind = types.MarkupKind.Markdown if studio.client.reads_markdown else types.MarkupKind.PlainText
            return types.Hover(types.MarkupContent(kind, hover_text(view)), text.range_of(name.start, name.end))
    return None


def hover_text(view: ClassView) -> str:
    """Markdown that also reads well as plain text."""
    title = f"**{view.key.qualname}**: {_STATES[view.state]}"
    lines = [title, view.message]
    if view.verdict is not None and view.verdict.report is not None:
        lines += _verdict(view.verdict.report)
    if view.state in ("ready", "compiled", "accepted"):
        lines += [_when_not(view), wording.NO_GRAD_NOTE]
    if view.background.capture is not None:
        lines.append(_captured(view.background.capture))
    return "\n\n".join(line for line in lines if line)


def _captured(capture: Capture) -> str:
    """What real runs showed, with the most frequent signatures."""
    calls = [f"- {call.calls:,} × {call.words}" for call in capture.calls[:3]]
    return "\n".join([f"{wording.captured(capture)[:1].upper()}{wording.captured(capture)[1:]}:", *calls])


def _when_not(view: ClassView) -> str:
    """Why the kernel may not be running: what its own file says."""
    found = _reasons(view)
    if not found:
        return ""
    return "The original code runs instead, wherever one of these holds:\n" + "\n".join(f"- {each}" for each in found)


def _reasons(view: ClassView) -> tuple[str, ...]:
    if view.has_kernel and view.found is not None:
        return reasons_of_file(view.key.path.with_name(f"{view.found.kernel}.py"))
    report = view.outcome.report if view.outcome else None
    return reasons(report.kernel.source) if report is not None and report.kernel is not None else ()


def _verdict(report: Report) -> list[str]:
    judged = report.judged
    lines = [f"Ran on: {wording.where(report.device)}." if report.device != "none" else "Ran on no device."]
    if report.arch:
        lines.append(f"Compiled for {report.arch}.")
    if judged is not None:
        lines += _candidate(judged)
    if report.estimate_ms is not None:
        lines.append(f"Estimate (roofline, not measured): {duration(report.estimate_ms, 3)}.")
    return [*lines, report.stopped]


def _candidate(candidate: Candidate) -> list[str]:
    lines = [f"Candidate {candidate.id} ({candidate.origin}), last stage: {candidate.stage}."]
    if candidate.precision is not None:
        lines.append(f"Precision {candidate.precision}.")
    if candidate.error is not None:
        lines.append(f"Against fp64: {wording.error_against_fp64(candidate.error)}.")
    if candidate.timing is not None:
        lines += [
            f"Measured on {candidate.timing.device}: {wording.timing(candidate.timing)}.",
            _table(candidate.timing),
        ]
    lines += [finding.message for finding in candidate.findings if finding.kind == "emulated-in-part"]
    lines += [f"{wording.resources(kernel)}." for kernel in candidate.resources]
    if candidate.profile is not None and candidate.profile.limiter:
        lines.append(f"Limited by: {wording.limits(candidate.profile)}.")
    return lines


def _table(timing: Timing) -> str:
    rows = [
        f"| {arm.name} | {duration(arm.median_ms)} | {duration(arm.low_ms)}–{duration(arm.high_ms)} |"
        for arm in timing.arms
    ]
    return "\n".join(["| arm | median | 95 % interval |", "| --- | --- | --- |", *rows])
