"""Keeping a store small: the oldest jobs go, with their candidates. Running jobs and accepted kernels' jobs stay."""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bounds:
    """What a store may hold before old jobs go."""

    jobs: int = 200
    source_bytes: int = 64 * 2**20


def prune(rows: sqlite3.Connection, candidates: Path, bounds: Bounds) -> tuple[Path, ...]:
    """Delete the rows of jobs beyond the bounds, within the caller's transaction.

    Returns the folders to remove once it is committed, those of jobs without rows among them."""
    jobs = [job for (job,) in rows.execute("SELECT id FROM jobs ORDER BY started DESC, rowid DESC")]
    accepted = _accepted(rows)
    beyond = _beyond(jobs, candidates, bounds)
    doomed = [job for job in beyond if job not in accepted and not _is_held(candidates / job)]
    rows.executemany("DELETE FROM jobs WHERE id = ?", [(job,) for job in doomed])
    kept = set(jobs) - set(doomed)
    return tuple(folder for folder in candidates.iterdir() if folder.name not in kept)


def remove_folders(folders: tuple[Path, ...]) -> None:
    """Remove candidates' folders; what cannot be removed now goes with the next pruning."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _beyond(jobs: list[str], candidates: Path, bounds: Bounds) -> Iterator[str]:
    """The jobs, newest first, after the bounds are reached."""
    total = 0
    for number, job in enumerate(jobs):
        total += sum(file.stat().st_size for file in (candidates / job).rglob("*.py"))
        if number >= bounds.jobs or total > bounds.source_bytes:
            yield job


def _accepted(rows: sqlite3.Connection) -> set[str]:
    latest = "SELECT max(number) FROM decisions GROUP BY file, qualname"
    return {
        job
        for (job,) in rows.execute(f"SELECT job FROM decisions WHERE decision = 'accepted' AND number IN ({latest})")
    }


def _is_held(folder: Path) -> bool:
    """Whether a living process works on the job."""
    try:
        with (folder / "lock").open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
