"""What a model was asked and answered, call by call: enough to go on after a crash, to replay, and to learn from."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cutesmith_agent.store.reading import reading

Kind = Literal["unusable", "declined", "plan", "candidate", "reference", "checks", "unclear"]


@dataclass(frozen=True)
class Outcome:
    """What a reply amounted to. `reason`: why it could not be used, or what was found wrong with a reference or its
    checks. `ok`: of these, whether they agreed; None: they ran, and nothing more is known."""

    kind: Kind
    reason: str = ""
    ok: bool | None = None


@dataclass(frozen=True)
class Call:
    """One call. `prompt`: its parts, as they were sent, in order; `reply`: `llm.port.Reply` as JSON values.

    `dollars` is None where the model's price is not known; `seconds` is how long the answer took; `candidate` the one
    that the call was for, whatever its own answer was worth: that is the `outcome`, None where it is not known."""

    digest: str
    purpose: str
    model: str
    prompt: tuple[str, ...]
    reply: dict[str, Any]
    dollars: float | None
    seconds: float
    candidate: str | None = None
    outcome: Outcome | None = None


class Calls:
    """The calls of a store's jobs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, job: str, call: Call, *, settles: int) -> int:
        """Record a call in place of its reservation; returns its number."""
        digests = [(_digest(text), text) for text in call.prompt]
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(
                "INSERT OR IGNORE INTO prompt_parts (job, digest, text) VALUES (?, ?, ?)",
                [(job, digest, text) for digest, text in digests],
            )
            number = self._insert(job, call, [digest for digest, _ in digests])
            self._connection.execute("DELETE FROM reservations WHERE number = ?", (settles,))
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        return number

    def _insert(self, job: str, call: Call, parts: Sequence[str]) -> int:
        row = self._connection.execute(
            "INSERT INTO calls (job, digest, purpose, model, prompt, reply, candidate, dollars, seconds, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (
                *(job, call.digest, call.purpose, call.model, json.dumps(parts), json.dumps(call.reply)),
                *(call.candidate, call.dollars, call.seconds, time.time()),
            ),
        ).fetchone()
        return row[0]

    def link(self, numbers: Sequence[int], candidate: str) -> None:
        """Say which candidate was made of some calls."""
        self._connection.executemany(
            "UPDATE calls SET candidate = ? WHERE number = ?", [(candidate, number) for number in numbers]
        )

    def judge(self, number: int, outcome: Outcome) -> None:
        """Say what a reply amounted to."""
        text = json.dumps(asdict(outcome))
        self._connection.execute("UPDATE calls SET outcome = ? WHERE number = ?", (text, number))

    @reading("calls")
    def of(self, job: str) -> tuple[tuple[int, Call], ...]:
        """A job's calls with their numbers, in the order they were made."""
        parts = dict(self._connection.execute("SELECT digest, text FROM prompt_parts WHERE job = ?", (job,)))
        rows = self._connection.execute(
            "SELECT number, digest, purpose, model, prompt, reply, dollars, seconds, candidate, outcome FROM calls"
            " WHERE job = ? ORDER BY number",
            (job,),
        )
        return tuple((row[0], _call(row[1:], parts)) for row in rows)

    def jobs(self, file: str | None, qualname: str | None) -> tuple[tuple[str, str, str], ...]:
        """(id, file, class) of the jobs in which a model was asked, oldest first. `file` as `location.file_key`."""
        rows = self._connection.execute(
            "SELECT id, file, qualname FROM jobs WHERE id IN (SELECT job FROM calls)"
            " AND (:file IS NULL OR file = :file) AND (:name IS NULL OR qualname = :name) ORDER BY started",
            {"file": file, "name": qualname},
        )
        return tuple(rows)


def _call(row: Sequence[Any], parts: dict[str, str]) -> Call:
    digest, purpose, model, prompt, reply, dollars, seconds, candidate, outcome = row
    texts = tuple(parts[each] for each in json.loads(prompt))
    amounts = None if outcome is None else Outcome(**json.loads(outcome))
    data = json.loads(reply)
    if not isinstance(data, dict) or not all(isinstance(each, str) for each in (digest, purpose, model, *texts)):
        raise TypeError
    return Call(digest, purpose, model, texts, data, dollars, seconds, candidate, amounts)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
