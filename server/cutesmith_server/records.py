"""What the project's store holds of a class, and the user's decisions written to it.

Opening a file creates nothing: reading looks at a store only where there is one.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.imported import changed_file
from cutesmith_agent.store.captures import Capture
from cutesmith_agent.store.location import workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.rows import Choice, Decision, FinishedJob, Verdict
from cutesmith_agent.store.store import Store
from cutesmith_server.surroundings import Surroundings, drifted

log = logging.getLogger(__name__)

_AGAIN = "cutesmith check --all proves it again."
IsOurs = Callable[[str], bool]  # of a candidate id: was a file of this content made for the class?


@dataclass(frozen=True)
class Record:
    """The last finished job on a class, and the last decision."""

    job: FinishedJob | None = None
    decision: Decision | None = None
    proved: Verdict | None = None  # of the accepted kernel
    capture: Capture | None = None

    @property
    def decided(self) -> Choice | None:
        """What the user did with what the job found; None: nothing yet."""
        if self.decision is None or self.job is None or self.decision.at < self.job.ended:
            return None
        return self.decision.decision

    def job_on_offer(self, *, has_kernel: bool) -> FinishedJob | None:
        """The job, unless what it found was decided on. What was accepted and is not in the class any more (the edit
        was undone, or the kernel removed) is on offer again."""
        is_undone = self.decided in ("accepted", "removed") and not has_kernel
        return self.job if self.decided is None or is_undone else None

    @property
    def accepted(self) -> Decision | None:
        return self.decision if self.decision is not None and self.decision.decision == "accepted" else None

    @property
    def imports_changed(self) -> str:
        """One sentence where a file that the accepted kernel's class uses is not what it was at the proof, or ""."""
        changed = changed_file(self.proved.imported) if self.accepted and self.proved else None
        return (
            f"{changed.name}, which its file imports, has changed since its kernel was proved. {_AGAIN}"
            if changed
            else ""
        )

    def moved(self, here: Surroundings) -> str:
        """One sentence on what an accepted kernel was proved with and is not here any more, or ""."""
        changed = drifted(self.proved.environment, here) if self.accepted and self.proved else ""
        return f"Its kernel was not proved with what is here: {changed}. {_AGAIN}" if changed else ""


def read_records(file: Path, qualnames: Iterable[str]) -> dict[str, Record]:
    """By class; empty without a store. Raises sqlite3.Error or OSError."""
    root = workspace_root(file)
    if not has_store(root):
        return {}
    with opened_store(root) as store:
        decisions = {decision.qualname: decision for decision in store.decisions(str(file))}
        captures = {capture.qualname: capture for capture in store.captures.of(str(file))}
        return {
            name: Record(
                store.latest(str(file), name),
                decisions.get(name),
                _proof(store, decisions.get(name)),
                captures.get(name),
            )
            for name in qualnames
        }


def _proof(store: Store, decision: Decision | None) -> Verdict | None:
    if decision is None or decision.candidate is None:
        return None
    return standing(store.verdicts(decision.candidate, decision.file, decision.qualname))


def standing(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Of the verdicts on one source, the latest first: the last one, unless it says less than an earlier one (nothing
    was run) that found it right."""
    last = next(iter(verdicts), None)
    if last is None or last.candidate.ok is not None:
        return last
    return next((each for each in verdicts if each.candidate.ok), last)


def known_files(root: Path) -> tuple[Path, ...]:
    """A project's files that kernels were made for or decided on. Raises sqlite3.Error or OSError."""
    if not has_store(root):
        return ()
    with opened_store(root) as store:
        return tuple(map(Path, store.files()))


def is_ours(file: Path, qualname: str) -> IsOurs:
    """Asks the store of the file's project."""

    def ask(candidate: str) -> bool:
        root = workspace_root(file)
        if not has_store(root):
            return False
        with opened_store(root) as store:
            return store.made(candidate, str(file), qualname)

    return ask


def record(
    choice: Choice,
    file: Path,
    qualname: str,
    *,
    candidate: str | None = None,
    class_hash: str | None = None,
    kernel: Path | None = None,
) -> Decision:
    """Writes a decision, about the class's last job. Raises sqlite3.Error or OSError."""
    with opened_store(workspace_root(file)) as store:
        job = store.latest(str(file), qualname)
        made = Decision(
            decision=choice,
            file=str(file),
            qualname=qualname,
            job=job.id if job else None,
            candidate=candidate,
            class_hash=class_hash,
            kernel=str(kernel) if kernel else None,
        )
        store.decide(made)
    return made


def has_store(root: Path) -> bool:
    """A project that cannot hold a store has it elsewhere, and opening it there changes nothing of the project."""
    return (root / ".cutesmith").exists() or not os.access(root, os.W_OK)


@contextmanager
def opened_store(root: Path) -> Iterator[Store]:
    opened = open_store(root)
    if opened.notice:
        log.warning(opened.notice)
    with opened.store as store:
        yield store


STORE_ERRORS = (sqlite3.Error, OSError)
