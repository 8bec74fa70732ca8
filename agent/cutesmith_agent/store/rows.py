"""What a store keeps, as values: jobs and their steps, decisions, verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from cutesmith_evaluator.types import Candidate, Environment

Choice = Literal["accepted", "rejected", "removed"]


@dataclass(frozen=True)
class JobKey:
    """A job, and the hash of all that its results depend on: equal digests may resume one another."""

    kind: str
    file: str
    qualname: str
    digest: str
    class_hash: str | None = None


@dataclass(frozen=True)
class Transition:
    """A step of a job. `at` is in seconds since the epoch."""

    job: str
    stage: str
    message: str
    at: float
    candidate: str | None = None


@dataclass(frozen=True)
class FinishedJob:
    """A job that came to its end, with the report it printed. `ended` is in seconds since the epoch."""

    id: str
    kind: str
    class_hash: str | None
    report: dict[str, Any]
    ended: float
    imported: dict[str, str] = field(default_factory=dict)  # hash by path: the files that the class's file imports


@dataclass(frozen=True)
class JobRow:
    """A job, however far it came. Times are in seconds since the epoch; no report: it did not come to its end."""

    id: str
    kind: str
    state: Literal["running", "done", "cancelled"]
    class_hash: str | None
    started: float
    ended: float | None
    report: dict[str, Any] | None


@dataclass(frozen=True)
class Decision:
    """What the user did with a proposal. `kernel` is the accepted file's absolute path."""

    decision: Choice
    file: str
    qualname: str
    job: str | None = None
    candidate: str | None = None
    class_hash: str | None = None
    kernel: str | None = None
    at: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What a job found of a candidate, in which environment, for which class. `ended`: seconds since the epoch."""

    candidate: Candidate
    environment: Environment
    class_hash: str | None
    ended: float
    imported: dict[str, str] = field(default_factory=dict)  # as of FinishedJob
