"""What there is to tell of a class's kernel, gathered from the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutesmith_agent.store.rows import JobRow
from cutesmith_agent.store.store import Store
from cutesmith_evaluator.types import Candidate
from cutesmith_server.records import standing
from cutesmith_server.report import Report, ReportError, read_report

_EARLIER = 8  # kernels of earlier jobs


@dataclass(frozen=True)
class Attempt:
    """A candidate as the job tried it. `seconds`: after the job's start; None: not known. `dollars`: of a model."""

    candidate: Candidate
    seconds: float | None = None
    dollars: float | None = None


@dataclass(frozen=True)
class Study:
    """A class with its latest job that made a candidate; `earlier`: the best kernels of jobs before, the latest first.

    `report` is None for a job that did not come to its end. `source`: the text of the judged candidate."""

    file: Path
    qualname: str
    job: JobRow
    attempts: tuple[Attempt, ...]
    earlier: tuple[Candidate, ...] = ()
    report: Report | None = None
    accepted: str | None = None
    source: str = ""

    @property
    def best(self) -> Candidate | None:
        """The kernel that the job offers, with the latest word on it."""
        return next((each.candidate for each in self.attempts if self._is_best(each.candidate)), None)

    def _is_best(self, candidate: Candidate) -> bool:
        return self.report is not None and candidate.id == self.report.best

    @property
    def judged(self) -> Candidate | None:
        """The one to speak of: the best, or without one the last that was tried."""
        return self.best or (self.attempts[-1].candidate if self.attempts else None)


def study(store: Store, file: Path, qualname: str) -> Study | None:
    """None where no job on the class has tried a candidate. Raises sqlite3.Error or OSError."""
    jobs = store.jobs(str(file), qualname)
    for place, job in enumerate(jobs):
        candidates = store.candidates(job.id)
        if candidates:
            return _study(store, file, qualname, job, candidates, jobs[place + 1 :])
    return None


def _study(
    store: Store,
    file: Path,
    qualname: str,
    job: JobRow,
    candidates: Sequence[Candidate],
    before: Sequence[JobRow],
) -> Study:
    report = _report(job)
    known = report.candidates if report is not None and report.candidates else candidates
    decision = next((each for each in store.decisions(str(file)) if each.qualname == qualname), None)
    accepted = decision.candidate if decision is not None and decision.decision == "accepted" else None
    found = Study(file, qualname, job, _attempts(store, job, known, report), (), report, accepted)
    earlier = (_kernel_of(store, each, file, qualname) for each in before[:_EARLIER])
    return Study(
        *(file, qualname, job, found.attempts),
        earlier=tuple(each for each in earlier if each is not None),
        report=report,
        accepted=accepted,
        source=_text(found.judged),
    )


def _report(job: JobRow) -> Report | None:
    try:
        return read_report(job.report) if job.report is not None else None
    except ReportError:
        return None


def _attempts(store: Store, job: JobRow, known: Sequence[Candidate], report: Report | None) -> tuple[Attempt, ...]:
    """A draft that was proved with its evidence in its header counts once, as what was proved."""
    proved = {each.draft for each in known}
    times = {step.candidate: step.at - job.started for step in store.transitions(job.id) if step.candidate}
    costs: dict[str, Any] = (report.model or {}).get("candidates", {}) if report is not None else {}
    return tuple(
        Attempt(each, times.get(each.id), costs.get(each.id) or costs.get(each.draft or ""))
        for each in known
        if each.id not in proved
    )


def _kernel_of(store: Store, job: JobRow, file: Path, qualname: str) -> Candidate | None:
    best = (job.report or {}).get("best")
    found = standing(store.verdicts(best, str(file), qualname)) if isinstance(best, str) else None
    return found.candidate if found is not None else None


def _text(candidate: Candidate | None) -> str:
    if candidate is None or candidate.path is None:
        return ""
    try:
        return Path(candidate.path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # pruned
        return ""
