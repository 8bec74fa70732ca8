"""What became of each class: a value per class, changed by a job's events, read against the class's present text.

Pure: whether a proposal still fits is asked anew each time, so undoing an edit makes a stale proposal good again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from cutesmith_server.agent_process import CandidateJudged, ConsentAsked, Died, Done, StageReached
from cutesmith_server.jobs import JobEvent, Paused
from cutesmith_server.orders import Kind
from cutesmith_server.protocol import State

if TYPE_CHECKING:
    from cutesmith_agent.describe.proposal import Proposal
    from cutesmith_evaluator.types import Candidate
    from cutesmith_server.report import Report

Decided = Literal["accepting", "arriving", "accepted", "rejected", "removed"]


@dataclass(frozen=True)
class Running:
    """A job in progress. `digest` is the class's at the start; `fraction` is 0..1."""

    kind: Kind
    digest: str
    stage: str
    message: str
    fraction: float = 0.0
    best: dict[str, Any] | None = None
    candidates: tuple[dict[str, Any], ...] = field(default=(), repr=False)  # as the agent told of them, each once


@dataclass(frozen=True)
class Outcome:
    """The last job's end, for the class text it saw. `report` is None when the agent died. `ended`: seconds since the
    epoch, not before the store's own time of it."""

    kind: Kind
    digest: str
    message: str
    ended: float
    report: Report | None = None
    raw_best: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def best(self) -> Candidate | None:
        return self.report.best_candidate if self.report else None

    @property
    def is_proposal(self) -> bool:
        return self.succeeded and self.report is not None and self.report.kernel is not None

    @property
    def reference(self) -> Proposal | None:
        """What a model wrote for a forward that is only described."""
        return self.report.reference if self.report else None

    @property
    def succeeded(self) -> bool:
        return self.best is not None and self.best.ok is not False


@dataclass(frozen=True)
class Session:
    """One class. `changed_outside`: its file changed on disk under the editor's buffer. `decided`: what the user did
    with the outcome, which is on offer no more; but one that was accepted is again when its kernel is not in the class
    (the edit was undone, or the kernel removed). "accepting": the editor was asked to make the edit. "arriving": it
    said that it has, and has not sent the text yet. `refuted`: the last try to validate a stale kernel again, which
    failed. `imports_changed`: the file that the class's file imports and that is not what it was when the job proved
    its kernel, or ""."""

    running: Running | None = None
    outcome: Outcome | None = None
    was_cancelled: bool = False
    is_paused: bool = False
    changed_outside: bool = False
    decided: Decided | None = None
    refuted: Outcome | None = None
    imports_changed: str = ""


def started(session: Session, kind: Kind, digest: str, *, queued: bool) -> Session:
    stage, message = ("queued", "waiting for another job to end") if queued else ("starting", "")
    return replace(session, running=Running(kind, digest, stage, message), was_cancelled=False, is_paused=False)


def after(session: Session, event: JobEvent) -> Session:
    """The session once an event of its job has come in."""
    running = session.running
    assert running is not None
    match event:
        case StageReached(stage, message, fraction):
            return replace(session, running=replace(running, stage=stage, message=message, fraction=fraction))
        case CandidateJudged(candidate):
            return replace(session, running=_with_candidate(running, candidate))
        case ConsentAsked():
            return session
        case Done():
            return _ended(session, _outcome(running.kind, running.digest, event.report, time.time()))
        case Died(message):
            return _ended(session, Outcome(running.kind, running.digest, message, time.time()))
        case Paused():
            return replace(session, running=None, is_paused=True)
        case _:  # cancelled: what was on offer before still is
            kept = session.outcome if session.outcome is not None and _is_offer(session.outcome) else None
            return replace(session, running=None, was_cancelled=True, outcome=kept)


def _with_candidate(running: Running, candidate: dict[str, Any]) -> Running:
    known = {each.get("id"): each for each in running.candidates} | {candidate.get("id"): candidate}
    best = candidate if candidate.get("ok") is not False else running.best
    return replace(running, best=best, candidates=tuple(known.values()))


def paused(session: Session) -> Session:
    """A job on the class was interrupted by the end of an earlier server, and can go on."""
    return session if session.running is not None else replace(session, is_paused=True)


def dropped(session: Session) -> Session:
    """The paused job is not to go on."""
    return replace(session, is_paused=False, was_cancelled=True)


def restored(digest: str, report: dict[str, Any], ended: float, *, decided: Decided | None) -> Session | None:
    """The session of a job that ended elsewhere; None when it made nothing to decide on."""
    outcome = _outcome("optimize", digest, report, ended)
    return Session(outcome=outcome, decided=decided) if _is_offer(outcome) else None


def is_settled(session: Session) -> bool:
    """Whether nothing is on its way here, so that what was done elsewhere may be taken over."""
    return session.running is None and not session.is_paused and session.decided not in ("accepting", "arriving")


def decided(session: Session, choice: Decided) -> Session:
    """The outcome is on offer no more."""
    return replace(session, decided=choice, was_cancelled=False, changed_outside=False)


def undecided(session: Session) -> Session:
    """The decision came to nothing: the outcome is on offer again."""
    return replace(session, decided=None)


def seen_changed(session: Session) -> Session:
    """The editor sent the file's new text: what it applied is in it."""
    return replace(session, decided="accepted") if session.decided == "arriving" else session


def on_offer(session: Session, *, has_kernel: bool) -> Outcome | None:
    """The last job's outcome while the user may still decide on it."""
    is_undone = session.decided in ("accepted", "removed") and not has_kernel
    return session.outcome if session.decided in (None, "accepting") or is_undone else None


def seen_on_disk(session: Session, *, differs: bool) -> Session:
    """`differs`: the file on disk is another than the editor's text, by an outside change."""
    return replace(session, changed_outside=differs)


def _ended(session: Session, outcome: Outcome) -> Session:
    if outcome.kind == "revalidate" and not outcome.is_proposal and session.outcome is not None:
        return replace(session, running=None, refuted=outcome)  # undoing the edit makes the kernel good again
    return Session(outcome=outcome, was_cancelled=session.was_cancelled, is_paused=session.is_paused)


def _outcome(kind: Kind, digest: str, data: dict[str, Any], ended: float) -> Outcome:
    from cutesmith_server.report import ReportError, read_report

    try:
        report = read_report(data)
    except ReportError as error:
        return Outcome(kind, digest, str(error), ended)
    raw_best = next((raw for raw in data.get("candidates", ()) if raw.get("id") == report.best), None)
    return Outcome(kind, digest, report.stopped, ended, report, raw_best)


def state_of(session: Session, *, digest: str | None, has_kernel: bool) -> State:
    """`digest` is the class's now; None when the file no longer has the class."""
    if session.running is not None:
        return "running"
    if session.is_paused:
        return "paused"
    outcome = on_offer(session, has_kernel=has_kernel)
    if outcome is not None and outcome.is_proposal:
        return _state_on_offer(session, outcome, digest)
    if has_kernel or session.decided == "arriving":
        return "accepted"
    if outcome is not None and outcome.digest == digest:
        if outcome.reference is not None:
            return "reference"
        return "failed" if not outcome.succeeded else _verdict(outcome)
    return "cancelled" if session.was_cancelled else "idle"


def _is_offer(outcome: Outcome) -> bool:
    return outcome.is_proposal or outcome.reference is not None


def _state_on_offer(session: Session, outcome: Outcome, digest: str | None) -> State:
    has_changed = outcome.digest != digest or session.changed_outside or session.imports_changed
    return "stale" if has_changed else _verdict(outcome)


def _verdict(outcome: Outcome) -> State:
    return "compiled" if outcome.best is not None and outcome.best.ok is None else "ready"
