"""A job's progress, told to whoever asked for it (events) and to the store (rows)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cutesmith_agent.printable import printable
from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.store.store import Store
from cutesmith_agent.store.trials import Told
from cutesmith_evaluator.types import Candidate, Environment, Stage
from cutesmith_evaluator.wire import converter

Emit = Callable[[dict[str, Any]], None]  # takes one event of docs/contracts.md


class Journal:
    """Tells of one job. `fraction` (0..1) is how far the job has come; set it as it goes on."""

    def __init__(self, emit: Emit, store: Store, job: str, scrubber: Scrubber | None = None) -> None:
        self._emit = emit
        self._scrubber = scrubber or Scrubber()
        self.store = store
        self.job = job
        self.fraction = 0.0
        self._stage: Stage = "propose"

    def stage(self, stage: Stage, message: str, candidate: str | None = None) -> None:
        """A transition."""
        self._stage = stage
        message = printable(self._scrubber.text(message))
        self.store.add_transition(self.job, stage, message, candidate)
        self.progress(message)

    def progress(self, message: str) -> None:
        """News within a stage: shown, not kept."""
        told = printable(self._scrubber.text(message))
        self._emit({"event": "stage", "stage": self._stage, "message": told, "fraction": round(self.fraction, 3)})

    def judged(self, candidate: Candidate, environment: Environment) -> None:
        """A verdict: kept and shown."""
        candidate = self._scrubber.candidate(candidate)
        self.store.save_candidate(self.job, candidate, environment)
        self.store.add_transition(self.job, candidate.stage, _verdict(candidate), candidate.id)
        self.repeat(candidate)

    def told(self, told: Told, environment: Environment) -> None:
        """A verdict that a proposer is about to learn of."""
        self.store.trials.add(self.job, replace(told, candidate=self._scrubber.candidate(told.candidate)), environment)

    def profiled(self, told: Told) -> None:
        """A profile that a proposer is about to be shown."""
        self.store.trials.add_profile(self.job, replace(told, candidate=self._scrubber.candidate(told.candidate)))

    def repeat(self, candidate: Candidate) -> None:
        """A verdict that the store has already."""
        self._emit({"event": "candidate", "candidate": converter().unstructure(self._scrubber.candidate(candidate))})


def _verdict(candidate: Candidate) -> str:
    if candidate.ok is False:
        return next((finding.message for finding in candidate.findings if finding.severity == "error"), "failed")
    return {True: "passed", None: "not run"}[candidate.ok]
