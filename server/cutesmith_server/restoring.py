"""What earlier servers and the command line did with a file's classes: read when it is opened or changed on disk."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cutesmith_agent.imported import changed_file
from cutesmith_server import sessions
from cutesmith_server.background import Background
from cutesmith_server.jobs import ClassKey
from cutesmith_server.sessions import Outcome, Session

if TYPE_CHECKING:
    from cutesmith_agent.store.rows import FinishedJob
    from cutesmith_server.documents import Document
    from cutesmith_server.records import Record
    from cutesmith_server.studio import Studio
    from cutesmith_server.surroundings import Surroundings

log = logging.getLogger(__name__)


class Restoring:
    """Reads in a thread; what it found is taken on the event loop."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, document: Document) -> None:
        self._tasks.add(task := asyncio.create_task(self._restore(document)))
        task.add_done_callback(self._tasks.discard)

    async def _restore(self, document: Document) -> None:
        from cutesmith_server.surroundings import Surroundings, surroundings

        names = [found.qualname for found in self._studio.outline(document.path).classes]
        try:
            here = await asyncio.to_thread(surroundings, self._interpreter(document))
        except OSError as error:
            log.warning("cannot tell what %s would run with: %s", document.path, error)
            here = Surroundings()
        records = await self._records(document.path, names)
        for name, record in records.items():
            key = ClassKey(document.path, name)
            self._studio.learn(key, _background(record, here))
            self._take(key, record)
        self._take_interrupted(document, names)
        self._studio.refresh(document.path)

    async def _records(self, path: Path, names: list[str]) -> dict[str, Record]:
        """Read again where the user decided on something meanwhile: the store may not have had it yet."""
        from cutesmith_server.records import STORE_ERRORS

        while True:
            decisions = self._studio.decisions
            try:
                async with self._studio.at_the_store:
                    records = await asyncio.to_thread(_read, path, names)
            except STORE_ERRORS as error:
                log.warning("cannot read what is stored about %s: %s", path, error)
                return {}
            if decisions == self._studio.decisions:
                return records

    def _interpreter(self, document: Document) -> Path:
        named = self._studio.settings_of(document.path).interpreter
        return Path(named).expanduser() if named else Path(sys.executable)

    def _take(self, key: ClassKey, record: Record) -> None:
        """The store's word, unless this server's is newer."""
        studio, session = self._studio, self._studio.sessions.get(key)
        if session is not None and not sessions.is_settled(session):
            return
        if record.decision is not None:
            self._take_decision(key, record)
        job = record.job
        if job is None or job.class_hash is None:
            return
        if session is None or session.outcome is None or session.outcome.ended < job.ended:
            found = sessions.restored(job.class_hash, job.report, job.ended, decided=record.decided)
            if found is not None:
                studio.sessions[key] = found
        elif record.decided is not None and session.decided is None and _is_about(record, session.outcome):
            studio.sessions[key] = sessions.decided(session, record.decided)
        self._take_imports(key, job)

    def _take_imports(self, key: ClassKey, job: FinishedJob) -> None:
        """Whether what the class's file imports is still what that job's kernel was proved with."""
        session = self._studio.sessions.get(key)
        if session is not None and session.outcome is not None and session.outcome.ended >= job.ended:
            changed = changed_file(job.imported)
            name = changed.name if changed is not None else ""
            self._studio.sessions[key] = replace(session, imports_changed=name)

    def _take_decision(self, key: ClassKey, record: Record) -> None:
        if record.accepted is not None:
            self._studio.accepted[key] = record.accepted
        else:
            self._studio.accepted.pop(key, None)

    def _take_interrupted(self, document: Document, names: list[str]) -> None:
        """Jobs that an earlier server left go on when the user says so: opening a file runs nothing."""
        studio = self._studio
        if studio.is_closed:
            return
        for key, order in studio.pending.left_over(document.path).items():
            if key.qualname in names and not studio.jobs.runs(key):
                studio.orders[key] = order
                studio.sessions[key] = sessions.paused(studio.sessions.get(key, Session()))
            else:
                studio.pending.forget(key)


def _is_about(record: Record, outcome: Outcome) -> bool:
    """Whether the decision can be on that: on what came to be before it, and not on a verdict that the user asked for,
    which leaves an accepted kernel accepted."""
    return record.decision is not None and record.decision.at >= outcome.ended and outcome.kind != "check"


def _read(path: Path, names: list[str]) -> dict[str, Record]:
    """With the files read that the classes' file imports: from then on it is enough to look at their stamps."""
    from cutesmith_server.records import read_records

    records = read_records(path, names)
    for record in records.values():
        _ = record.imports_changed, changed_file(record.job.imported if record.job else {})
    return records


def _background(record: Record, here: Surroundings) -> Background:
    proofs = (record.proved, record.job)
    imported = frozenset(file for proof in proofs if proof is not None for file in proof.imported)
    return Background(record.capture, record.moved(here), record.imports_changed, imported)
