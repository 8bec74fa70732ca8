"""What proposers were told of their drafts, with what it took: a job that goes on, or is replayed, is told the same."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cutesmith_agent.store.reading import reading
from cutesmith_evaluator.types import Candidate, Environment
from cutesmith_evaluator.wire import converter


@dataclass(frozen=True)
class Told:
    """A candidate as a proposer saw it, and the seconds that took."""

    candidate: Candidate
    seconds: float


class Trials:
    """The trials of a store's jobs. `folder`: the store's, which holds the sources."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder

    def add(self, job: str, told: Told, environment: Environment) -> None:
        """A verdict, before a proposer is told of it; one from another environment goes, its profile too."""
        self._connection.execute(
            "INSERT OR REPLACE INTO trials (job, candidate, environment, record, seconds) VALUES (?, ?, ?, ?, ?)",
            (job, told.candidate.id, environment_text(environment), self._record(told.candidate), told.seconds),
        )

    def add_profile(self, job: str, told: Told) -> None:
        """The profilers' figures of a candidate, before a proposer is shown them."""
        self._connection.execute(
            "UPDATE trials SET profiled = ?, profiling = ? WHERE job = ? AND candidate = ?",
            (self._record(told.candidate), told.seconds, job, told.candidate.id),
        )

    @reading("trials")
    def of(self, job: str, environment: Environment) -> dict[str, Told]:
        """By the candidate's id: those that were judged in this environment."""
        rows = self._connection.execute(
            "SELECT candidate, record, seconds FROM trials WHERE job = ? AND environment = ?",
            (job, environment_text(environment)),
        )
        return {id: Told(self._candidate(record), seconds) for id, record, seconds in rows}

    @reading("trials")
    def profile(self, job: str, candidate: str, environment: Environment) -> Told | None:
        """A candidate with its profile; None where it has none from this environment."""
        row = self._connection.execute(
            "SELECT profiled, profiling FROM trials"
            " WHERE job = ? AND candidate = ? AND environment = ? AND profiled IS NOT NULL",
            (job, candidate, environment_text(environment)),
        ).fetchone()
        return Told(self._candidate(row[0]), row[1]) if row else None

    def _record(self, candidate: Candidate) -> str:
        assert candidate.path is not None
        path = Path(candidate.path).relative_to(self._folder)
        return json.dumps(converter().unstructure(replace(candidate, path=str(path))))

    def _candidate(self, record: str) -> Candidate:
        data: dict[str, Any] = json.loads(record)
        return converter().structure(data | {"path": str(self._folder / data["path"])}, Candidate)


def environment_text(environment: Environment) -> str:
    """The spelling by which rows know an environment."""
    return json.dumps(converter().unstructure(environment), sort_keys=True)
