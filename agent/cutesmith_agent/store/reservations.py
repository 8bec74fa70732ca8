"""Calls that were begun and that nobody has seen the end of: each counts with the most that it may have cost."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass

from cutesmith_agent.store.reading import reading


@dataclass(frozen=True)
class Reservation:
    """A call as it was begun. `usage`: the most tokens of each kind that it may take, as in `llm.port.Usage`; `dollars`
    None: the model's price is not known."""

    model: str
    purpose: str
    usage: dict[str, int]
    dollars: float | None


class Reservations:
    """The reservations of a store's jobs. One that a killed process left behind stays: the model was asked."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, job: str, made: Reservation) -> int:
        """Before the call; returns its number."""
        row = self._connection.execute(
            "INSERT INTO reservations (job, model, purpose, usage, dollars, at) VALUES (?, ?, ?, ?, ?, ?)"
            " RETURNING number",
            (job, made.model, made.purpose, json.dumps(made.usage), made.dollars, time.time()),
        ).fetchone()
        return row[0]

    def release(self, number: int) -> None:
        """The call cost nothing."""
        self._connection.execute("DELETE FROM reservations WHERE number = ?", (number,))

    @reading("reservations")
    def of(self, job: str) -> tuple[Reservation, ...]:
        """Those of a job that are not settled, in the order they were made."""
        rows = self._connection.execute(
            "SELECT model, purpose, usage, dollars FROM reservations WHERE job = ? ORDER BY number", (job,)
        )
        return tuple(Reservation(model, purpose, json.loads(usage), dollars) for model, purpose, usage, dollars in rows)
