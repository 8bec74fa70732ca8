"""Rows and files of one store."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from cutesmith_agent.store import clock
from cutesmith_agent.store.calls import Calls
from cutesmith_agent.store.captures import Captures
from cutesmith_agent.store.location import file_key
from cutesmith_agent.store.pruning import Bounds, prune, remove_folders
from cutesmith_agent.store.reading import reading
from cutesmith_agent.store.reservations import Reservations
from cutesmith_agent.store.rows import Decision, FinishedJob, JobKey, JobRow, Transition, Verdict
from cutesmith_agent.store.trials import Trials, environment_text
from cutesmith_evaluator.types import Candidate, Environment
from cutesmith_evaluator.wire import converter


class Store:
    """An open store (`opening.open_store`). One writer per job; any number of readers. Close it, or use `with`.

    Files may be named through links; decisions name them as `location.file_key` does."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._connection = connection
        self.folder = folder
        self._locks: dict[str, IO[str]] = {}

    def close(self) -> None:
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, also when a signal interrupts it."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @property
    def calls(self) -> Calls:
        """What models were asked in this store's jobs."""
        return Calls(self._connection)

    @property
    def reservations(self) -> Reservations:
        """Calls of models that were begun in this store's jobs and did not end."""
        return Reservations(self._connection)

    @property
    def captures(self) -> Captures:
        """How classes were built and called in real runs."""
        return Captures(self._connection)

    @property
    def trials(self) -> Trials:
        """What proposers were told in this store's jobs."""
        return Trials(self._connection, self.folder)

    def consent(self, host: str) -> bool | None:
        """Whether the user lets code of this workspace be sent to a host; None: never asked."""
        row = self._connection.execute("SELECT granted FROM consents WHERE host = ?", (host,)).fetchone()
        return bool(row[0]) if row else None

    def agreed_terms(self, host: str) -> str:
        """What the project's settings asked for when the user was asked: `llm.terms` reads it."""
        row = self._connection.execute("SELECT terms FROM consents WHERE host = ?", (host,)).fetchone()
        return row[0] if row else "{}"

    def set_consent(self, host: str, *, granted: bool, terms: str = "{}") -> None:
        with self._transaction() as rows:
            rows.execute(
                "INSERT OR REPLACE INTO consents (host, granted, terms, at) VALUES (?, ?, ?, ?)",
                (host, granted, terms, time.time()),
            )

    def begin_job(self, key: JobKey, *, resume: bool, finished: bool = False) -> str:
        """The id of a new job, or (resume) of the latest with this key that no living process works on: an unfinished
        one, or with `finished` any."""
        with self._transaction() as rows:
            earlier = rows.execute(
                "SELECT id FROM jobs WHERE key = ? AND (state != 'done' OR ?) ORDER BY started DESC",
                (key.digest, finished),
            ).fetchall()
            for (job,) in earlier if resume else []:
                if self._lock(job):
                    rows.execute("UPDATE jobs SET state = 'running', ended = NULL WHERE id = ?", (job,))
                    return job
            return self._insert_job(rows, key)

    def _insert_job(self, rows: sqlite3.Connection, key: JobKey) -> str:
        job = uuid.uuid4().hex[:12]
        self._lock(job)
        rows.execute(
            "INSERT INTO jobs (id, key, kind, file, qualname, class_hash, state, started)"
            " VALUES (?, ?, ?, ?, ?, ?, 'running', ?)",
            (job, key.digest, key.kind, file_key(key.file), key.qualname, key.class_hash, time.time()),
        )
        return job

    def _lock(self, job: str) -> bool:
        """Hold the job until this process closes the store or dies; false when another process holds it."""
        folder = self.folder / "candidates" / job
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._locks[job] = file
        return True

    def note_imported(self, job: str, imported: dict[str, str]) -> None:
        """The hashes of what the job's file imports. Verdicts of a resumed job that were of other code go."""
        text = json.dumps(imported, sort_keys=True)
        with self._transaction() as rows:
            (before,) = rows.execute("SELECT imported FROM jobs WHERE id = ?", (job,)).fetchone()
            if before not in (None, text):
                rows.execute("DELETE FROM candidates WHERE job = ?", (job,))
                rows.execute("DELETE FROM trials WHERE job = ?", (job,))
            rows.execute("UPDATE jobs SET imported = ? WHERE id = ?", (text, job))

    def add_transition(self, job: str, stage: str, message: str, candidate: str | None = None) -> None:
        with self._transaction() as rows:
            rows.execute(
                "INSERT INTO transitions (job, candidate, stage, message, at) VALUES (?, ?, ?, ?, ?)",
                (job, candidate, stage, message, time.time()),
            )

    def transitions(self, job: str) -> tuple[Transition, ...]:
        rows = self._connection.execute(
            "SELECT job, stage, message, at, candidate FROM transitions WHERE job = ? ORDER BY number", (job,)
        )
        return tuple(Transition(*row) for row in rows)

    def save_source(self, job: str, candidate: str, module: str, source: str) -> Path:
        """Write a candidate's source as `<module>.py`; whoever finds the file finds it whole."""
        path = self.folder / "candidates" / job / candidate / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(source)
        Path(name).replace(path)
        return path

    def save_candidate(self, job: str, candidate: Candidate, environment: Environment) -> None:
        """Insert or replace what is known of a candidate whose source was saved."""
        assert candidate.path is not None
        record = json.dumps(converter().unstructure(replace(candidate, path=None)))
        path = Path(candidate.path).relative_to(self.folder)
        with self._transaction() as rows:
            rows.execute(
                "INSERT INTO candidates (job, id, path, environment, record) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO"
                " UPDATE SET path = excluded.path, environment = excluded.environment, record = excluded.record",
                (job, candidate.id, str(path), environment_text(environment), record),
            )

    @reading("candidates")
    def candidates(self, job: str, environment: Environment | None = None) -> tuple[Candidate, ...]:
        """A job's candidates in the order they were first saved; with an environment, those judged in it."""
        rows = self._connection.execute(
            "SELECT record, path, environment FROM candidates WHERE job = ? ORDER BY rowid", (job,)
        ).fetchall()
        wanted = environment_text(environment) if environment else None
        return tuple(self._candidate(record, path) for record, path, where in rows if wanted in (None, where))

    def _candidate(self, record: str, path: str) -> Candidate:
        candidate = converter().structure(json.loads(record), Candidate)
        return replace(candidate, path=str(self.folder / path))

    def finish_job(self, job: str, report: dict[str, Any] | None, bounds: Bounds | None = None) -> None:
        """End a job: with its report, or (None) cancelled, to be resumed later. Old jobs beyond the bounds go."""
        state = "cancelled" if report is None else "done"
        text = None if report is None else json.dumps(report)
        with self._transaction() as rows:
            rows.execute(
                "UPDATE jobs SET state = ?, ended = ?, report = ? WHERE id = ?", (state, clock.now(rows), text, job)
            )
            folders = prune(rows, self.folder / "candidates", bounds or Bounds())
        if lock := self._locks.pop(job, None):
            lock.close()
        remove_folders(folders)

    @reading("jobs")
    def jobs(self, file: str, qualname: str) -> tuple[JobRow, ...]:
        """All jobs on a class that are kept, the latest first."""
        rows = self._connection.execute(
            "SELECT id, kind, state, class_hash, started, ended, report FROM jobs WHERE file = ? AND qualname = ?"
            " ORDER BY started DESC, rowid DESC",
            (file_key(file), qualname),
        )
        return tuple(
            JobRow(id, kind, state, digest, started, ended, json.loads(report) if report else None)
            for id, kind, state, digest, started, ended, report in rows
        )

    @reading("jobs")
    def latest(self, file: str, qualname: str, *, kind: str = "optimize") -> FinishedJob | None:
        """The latest finished job of a kind on a class; a check of somebody's kernel offers none. A revalidation counts
        as the job whose kernel it proved again; one that failed leaves things as they were."""
        row = self._connection.execute(
            "SELECT id, kind, class_hash, report, ended, imported FROM jobs"
            " WHERE file = ? AND qualname = ? AND state = 'done'"
            " AND (kind = ? OR ? = 'optimize' AND kind = 'revalidate' AND json_extract(report, '$.best') IS NOT NULL)"
            " ORDER BY ended DESC, rowid DESC LIMIT 1",
            (file_key(file), qualname, kind, kind),
        ).fetchone()
        if row is None:
            return None
        id, of_kind, digest, report, ended, imported = row
        return FinishedJob(id, of_kind, digest, json.loads(report), ended, json.loads(imported or "{}"))

    @reading("candidates")
    def known(self, candidate: str) -> Candidate | None:
        """What was last found out about a source, in whatever job."""
        row = self._connection.execute(
            "SELECT record, path FROM candidates WHERE id = ? ORDER BY rowid DESC LIMIT 1", (candidate,)
        ).fetchone()
        return self._candidate(*row) if row else None

    def files(self) -> tuple[str, ...]:
        """The files of classes that a kernel was made for or decided on, or that were captured, the first first."""
        rows = self._connection.execute(
            "SELECT file FROM (SELECT file, ended AS at FROM jobs WHERE kind = 'optimize' AND state = 'done'"
            " UNION ALL SELECT file, at FROM decisions UNION ALL SELECT file, at FROM captures)"
            " GROUP BY file ORDER BY min(at), file"
        )
        return tuple(file for (file,) in rows)

    def made(self, candidate: str, file: str, qualname: str) -> bool:
        """Whether the source with this id was made for this class."""
        (known,) = self._connection.execute(
            "SELECT EXISTS (SELECT 1 FROM candidates JOIN jobs ON jobs.id = candidates.job"
            " WHERE candidates.id = :id AND file = :file AND qualname = :name AND jobs.kind != 'check')"
            " OR EXISTS (SELECT 1 FROM decisions WHERE candidate = :id AND file = :file AND qualname = :name)",
            {"id": candidate, "file": file_key(file), "name": qualname},
        ).fetchone()
        return bool(known)

    @reading("candidates")
    def verdicts(self, candidate: str, file: str, qualname: str) -> tuple[Verdict, ...]:
        """What finished jobs on a class found of a source, the latest first."""
        rows = self._connection.execute(
            "SELECT record, path, environment, class_hash, ended, imported"
            " FROM candidates JOIN jobs ON jobs.id = candidates.job"
            " WHERE candidates.id = ? AND file = ? AND qualname = ? AND state = 'done' ORDER BY ended DESC",
            (candidate, file_key(file), qualname),
        )
        return tuple(
            Verdict(
                self._candidate(record, path),
                converter().structure(json.loads(environment), Environment),
                digest,
                ended,
                json.loads(imported or "{}"),
            )
            for record, path, environment, digest, ended, imported in rows
        )

    def decide(self, decision: Decision) -> None:
        """Record what the user did; `at` is set to now."""
        with self._transaction() as rows:
            fields = tuple(vars(replace(decision, file=file_key(decision.file), at=clock.now(rows))).values())
            rows.execute(
                "INSERT INTO decisions (decision, file, qualname, job, candidate, class_hash, kernel, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                fields,
            )

    def decisions(self, file: str | None = None) -> tuple[Decision, ...]:
        """The latest decision on each class, of one file or of all."""
        wanted = None if file is None else file_key(file)
        rows = self._connection.execute(
            "SELECT decision, file, qualname, job, candidate, class_hash, kernel, at FROM decisions"
            " WHERE number IN (SELECT max(number) FROM decisions GROUP BY file, qualname)"
            " AND (? IS NULL OR file = ?) ORDER BY number",
            (wanted, wanted),
        )
        return tuple(Decision(*row) for row in rows)
