"""The agent's report as a value. It comes as JSON; its candidates and findings are the evaluator's own types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cattrs import BaseValidationError

from cutesmith_agent.describe.proposal import Proposal
from cutesmith_evaluator.types import Candidate, Finding
from cutesmith_evaluator.wire import converter


@dataclass(frozen=True)
class KernelFile:
    """The file that accepting writes: absolute path and whole source."""

    path: str
    source: str


@dataclass(frozen=True)
class Report:
    """What a job found out (`docs/contracts.md`, Agent process)."""

    task: dict[str, Any]  # file, class, category, ops
    device: str
    arch: str | None = None
    candidates: tuple[Candidate, ...] = ()
    best: str | None = None  # a candidate's id
    stopped: str = ""
    findings: tuple[Finding, ...] = ()
    estimate_ms: float | None = None
    kernel: KernelFile | None = None
    patch: str | None = None
    model: dict[str, Any] | None = None  # what a model was asked: agent.report.ModelUse
    reference: Proposal | None = None  # of a class that was only described: waits for approval

    @property
    def best_candidate(self) -> Candidate | None:
        return next((candidate for candidate in self.candidates if candidate.id == self.best), None)

    @property
    def judged(self) -> Candidate | None:
        """The candidate to speak of: the best, or without one the last that was tried."""
        return self.best_candidate or (self.candidates[-1] if self.candidates else None)

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        return (*self.findings, *(self.judged.findings if self.judged else ()))


class ReportError(ValueError):
    """A report is not one. `str()` is one sentence for a person."""


def read_report(data: Mapping[str, Any]) -> Report:
    """The report an agent sent. Raises ReportError."""
    try:
        return converter().structure(data, Report)
    except (BaseValidationError, TypeError, ValueError) as error:
        raise ReportError(
            "The agent's report cannot be read: restart the server, so that both are of one version."
        ) from error
