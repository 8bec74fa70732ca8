"""What a class's last job found, as diagnostics on the class's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_agent.subject import candidate_id
from cutesmith_server import codes, uris, wording
from cutesmith_server.documents import Text
from cutesmith_server.outlines import Outline
from cutesmith_server.protocol import DIAGNOSTIC_SOURCE
from cutesmith_server.views import ClassView, errors_of

if TYPE_CHECKING:
    from cutesmith_evaluator.types import Finding

NO_INPUTS = "no-inputs"
LOWERED = "lowered-precision"
OUTDATED = ("kernel-stale", "kernel-edited")
_MOST = 5  # of one class


@dataclass(frozen=True)
class Shown:
    """What the editor shows of a diagnostic. Without `related`, places are told in the message."""

    related: bool = True
    links: bool = True


def diagnostics(view: ClassView, outline: Outline, text: Text, shown: Shown) -> list[types.Diagnostic]:
    """A failing candidate: warnings with the candidate's lines. A kernel ready: information with its figures."""
    if view.found is None:
        return []
    where = text.range_of(view.found.name_range.start, view.found.name_range.end)
    return [_diagnostic(where, *entry, shown) for entry in _entries(view, outline)][:_MOST]


def diagnostics_within(path: Path, text: Text, views: Iterable[ClassView], shown: Shown) -> list[types.Diagnostic]:
    """What was found in an open kernel file, on its lines, while the file is the one that was judged."""
    found: list[types.Diagnostic] = []
    for view in views:
        outcome = view.outcome
        judged = outcome.report.judged if outcome and outcome.report and not outcome.succeeded else None
        if outcome is None or judged is None or judged.id != candidate_id(text.content.replace("\r\n", "\n")):
            continue
        findings = [each for each in errors_of(outcome) if each.file == str(path) and each.line is not None]
        found += [_on_line(finding, text, shown) for finding in findings]
    return found


def _on_line(finding: Finding, text: Text, shown: Shown) -> types.Diagnostic:
    assert finding.line is not None
    where = text.line_range(finding.line)
    severity = types.DiagnosticSeverity.Warning
    if finding.severity == "error":
        severity = types.DiagnosticSeverity.Error
    return _diagnostic(where, severity, finding.kind, finding.message, [], shown)


_Entry = tuple[types.DiagnosticSeverity, str, str, "list[Finding]"]


def _entries(view: ClassView, outline: Outline) -> list[_Entry]:
    information, warning = types.DiagnosticSeverity.Information, types.DiagnosticSeverity.Warning
    outcome, name = view.outcome, view.key.qualname
    match view.state:
        case "ready" | "compiled" if outcome and outcome.best:
            message = f"CuTe kernel for {name}: {wording.headline(outcome.best)}."
            return [(information, f"kernel-{view.state}", message, [])]
        case "reference":
            return [(information, "reference-ready", view.message, [])]
        case "stale":
            return [(information, "kernel-stale", view.message, [])]
        case "accepted" if view.drift:
            return [(warning, "kernel-edited", view.drift, []), *_failures(view, outline)]
        case "accepted" if view.background.moved:
            return [(information, "kernel-moved", view.background.moved, []), *_failures(view, outline)]
    return _failures(view, outline)


def _failures(view: ClassView, outline: Outline) -> list[_Entry]:
    """What the last job on the class, as it is, found wrong."""
    warning, outcome = types.DiagnosticSeverity.Warning, view.outcome
    if outcome is None or outcome.succeeded or view.session.running is not None:
        return []
    findings = [finding for finding in errors_of(outcome) if not _is_settled(finding, view, outline)]
    if not findings:
        return [] if errors_of(outcome) else [(warning, "no-kernel", outcome.message, [])]
    return [(warning, finding.kind, finding.message, [finding]) for finding in findings]


def _is_settled(finding: Finding, view: ClassView, outline: Outline) -> bool:
    """Missing inputs are added outside the class, or captured: the verdict on the class itself still looks fresh."""
    from cutesmith_server.inputs_stub import lacks_inputs

    if finding.kind != NO_INPUTS:
        return False
    capture = view.background.capture
    return (capture is not None and bool(capture.usable)) or not lacks_inputs(outline, view.key.qualname)


def _diagnostic(
    where: types.Range,
    severity: types.DiagnosticSeverity,
    code: str,
    message: str,
    findings: list[Finding],
    shown: Shown,
) -> types.Diagnostic:
    placed = [finding for finding in findings if finding.file is not None and finding.line is not None]
    if placed and not shown.related:
        message += "".join(f" ({finding.file}:{finding.line})" for finding in placed)
    related = [_related(finding) for finding in placed] if shown.related else None
    link = codes.link(code) if shown.links else None
    return types.Diagnostic(
        where,
        message,
        severity,
        code,
        code_description=types.CodeDescription(link) if link else None,
        source=DIAGNOSTIC_SOURCE,
        related_information=related or None,
    )


def _related(finding: Finding) -> types.DiagnosticRelatedInformation:
    assert finding.file is not None
    assert finding.line is not None
    line = max(finding.line - 1, 0)
    whole_line = types.Range(types.Position(line, 0), types.Position(line + 1, 0))
    location = types.Location(uris.from_path(Path(finding.file)), whole_line)
    return types.DiagnosticRelatedInformation(location, finding.message)
