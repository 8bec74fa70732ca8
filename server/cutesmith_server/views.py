"""A class as the editor shows it: its place in the text, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cutesmith_server import wording
from cutesmith_server.background import NOTHING, Background
from cutesmith_server.jobs import ClassKey
from cutesmith_server.protocol import JobState, State
from cutesmith_server.sessions import Outcome, Session, on_offer, state_of

if TYPE_CHECKING:
    from cutesmith_agent.source.outline import ModuleClass
    from cutesmith_evaluator.types import Finding


@dataclass(frozen=True)
class ClassView:
    """`drift`: why the verdict on an accepted kernel holds no more, or "" (see `drift.py`)."""

    uri: str
    key: ClassKey
    found: ModuleClass | None  # None: the file no longer has the class
    session: Session
    digest: str | None
    drift: str = ""
    accepted: str | None = None  # id of the candidate that was accepted
    is_marked: bool | None = None  # for watching; None where classes are not watched by name
    background: Background = NOTHING

    @property
    def state(self) -> State:
        return state_of(self.session, digest=self.digest, has_kernel=self.has_kernel)

    @property
    def has_kernel(self) -> bool:
        """Whether the text hands over to a kernel."""
        return self.found is not None and self.found.has_kernel

    @property
    def outcome(self) -> Outcome | None:
        """The last job's outcome while it says something of the class as it is."""
        outcome = on_offer(self.session, has_kernel=self.has_kernel)
        return outcome if outcome is not None and outcome.digest == self.digest else None

    @property
    def verdict(self) -> Outcome | None:
        """What is known of the kernel on offer or, without one, of the accepted kernel."""
        last = self.session.outcome
        if self.outcome is None and self.state == "accepted" and last is not None and last.best is not None:
            return last if last.best.id == self.accepted else None
        return self.outcome

    @property
    def message(self) -> str:
        """One sentence on the state, or ""."""
        session = self.session
        match self.state:
            case "running" if session.running:
                return session.running.message
            case "paused":
                return "paused: what it found out is kept, and the job goes on from there when it is resumed"
            case "ready" | "compiled" if self.outcome and self.outcome.best:
                return wording.headline(self.outcome.best)
            case "failed" if self.outcome:
                return failure_of(self.outcome)
            case "reference" if self.outcome:
                return self.outcome.message
            case "stale":
                return self._why_stale()
            case "accepted":
                return self.drift or self.background.moved
            case _:
                return ""

    @property
    def refuted(self) -> Outcome | None:
        """The failed try to prove the kernel again for the class as it is."""
        found = self.session.refuted
        return found if found is not None and found.digest == self.digest else None

    @property
    def needs_revalidation(self) -> bool:
        """Whether a kernel, on offer or accepted, was proved for another class or file than there is, and is not
        known to be wrong."""
        if self.state == "stale":
            return not self.session.changed_outside and self.refuted is None
        is_known = self.outcome is not None and not self.outcome.succeeded
        is_doubtful = bool(self.drift or self.background.moved)
        return self.state == "accepted" and is_doubtful and not is_known and self._has_kernel_file

    @property
    def _has_kernel_file(self) -> bool:
        return self.found is not None and self.key.path.with_name(f"{self.found.kernel}.py").is_file()

    def _why_stale(self) -> str:
        name = self.key.qualname
        if self.refuted is not None:
            why = failure_of(self.refuted).rstrip(".")
            return f"The kernel is not right for {name} as it is now ({why}): generate it again."
        if self.session.changed_outside:
            return f"{self.key.path.name} was changed on disk since the kernel of {name} was proved: generate it again."
        what = self.session.imports_changed
        if what and self.session.outcome is not None and self.session.outcome.digest == self.digest:
            return (
                f"{what}, which its file imports, has changed since the kernel of {name} was proved: validate it again."
            )
        return f"{name} has changed since its kernel was proved: generate it again."

    def argument(self, **more: str) -> dict[str, Any]:
        """What a command about this class takes."""
        return {"uri": self.uri, "class": self.key.qualname, **more}

    def job_state(self) -> JobState:
        running, verdict = self.session.running, self.verdict
        best = running.best if running else verdict.raw_best if verdict else None
        stage = running.stage if running else ""
        return JobState(self.uri, self.key.qualname, self.state, stage, self.message, best)


def failure_of(outcome: Outcome) -> str:
    """Why a job gave no usable kernel, in one sentence."""
    finding = next(iter(errors_of(outcome)), None)
    return finding.message if finding else outcome.message


def errors_of(outcome: Outcome) -> list[Finding]:
    findings = outcome.report.all_findings if outcome.report else ()
    return [finding for finding in findings if finding.severity != "information"]
