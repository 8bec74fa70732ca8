"""What a class's last job found, as diagnostics on the class's name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_server import uris, wording
from cutesmith_server.documents import Text
from cutesmith_server.outlines import Outline
from cutesmith_server.protocol import DIAGNOSTIC_SOURCE
from cutesmith_server.views import ClassView, errors_of

if TYPE_CHECKING:
    from cutesmith_evaluator.types import Finding

NO_INPUTS = "no-inputs"
_MOST = 5  # of one class


def diagnostics(view: ClassView, outline: Outline, text: Text, *, with_related: bool) -> list[types.Diagnostic]:
    """A failing candidate: warnings with the candidate's lines. A kernel ready: information with its figures.

    `with_related`: the editor shows related locations; else they are told in the message."""
    if view.found is None:
        return []
    where = text.range_of(view.found.name_range.start, view.found.name_range.end)
    return [_diagnostic(where, *entry, with_related=with_related) for entry in _entries(view, outline)][:_MOST]


_Entry = tuple[types.DiagnosticSeverity, str, str, "list[Finding]"]


def _entries(view: ClassView, outline: Outline) -> list[_Entry]:
    information, warning = types.DiagnosticSeverity.Information, types.DiagnosticSeverity.Warning
    outcome, name = view.outcome, view.key.qualname
    match view.state:
        case "ready" | "compiled" if outcome and outcome.best:
            message = f"CuTe kernel for {name}: {wording.headline(outcome.best)}."
            return [(information, f"kernel-{view.state}", message, [])]
        case "stale":
            return [(information, "kernel-stale", view.message, [])]
        case "accepted" if view.drift:
            return [(warning, "kernel-edited", view.drift, [])]
    if outcome is None or outcome.succeeded or view.session.running is not None:
        return []
    findings = [finding for finding in errors_of(outcome) if not _is_settled(finding, view, outline)]
    if not findings:
        return [] if errors_of(outcome) else [(warning, "no-kernel", outcome.message, [])]
    return [(warning, finding.kind, finding.message, [finding]) for finding in findings]


def _is_settled(finding: Finding, view: ClassView, outline: Outline) -> bool:
    """Missing inputs are added outside the class, so the verdict on the class itself still looks fresh."""
    from cutesmith_server.inputs_stub import lacks_inputs

    return finding.kind == NO_INPUTS and not lacks_inputs(outline, view.key.qualname)


def _diagnostic(
    where: types.Range,
    severity: types.DiagnosticSeverity,
    code: str,
    message: str,
    findings: list[Finding],
    *,
    with_related: bool,
) -> types.Diagnostic:
    placed = [finding for finding in findings if finding.file is not None and finding.line is not None]
    if placed and not with_related:
        message += "".join(f" ({finding.file}:{finding.line})" for finding in placed)
    related = [_related(finding) for finding in placed] if with_related else None
    return types.Diagnostic(
        where, message, severity, code, source=DIAGNOSTIC_SOURCE, related_information=related or None
    )


def _related(finding: Finding) -> types.DiagnosticRelatedInformation:
    assert finding.file is not None
    assert finding.line is not None
    line = max(finding.line - 1, 0)
    whole_line = types.Range(types.Position(line, 0), types.Position(line + 1, 0))
    location = types.Location(uris.from_path(Path(finding.file)), whole_line)
    return types.DiagnosticRelatedInformation(location, finding.message)
