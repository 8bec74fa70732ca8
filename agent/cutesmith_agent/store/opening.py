"""Opening a store: made, migrated, and when it is damaged or another program's, set aside under a new name."""

from __future__ import annotations

import fcntl
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.store.location import project_folder, state_folder, temporary_folder
from cutesmith_agent.store.schema import ForeignDatabase, NewerSchema, migrate
from cutesmith_agent.store.store import Store

DATABASE = "store.sqlite"
_BUSY_S = 5.0
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


@dataclass(frozen=True)
class Opened:
    """A store, and a sentence for the user when it is not simply the project's own."""

    store: Store
    notice: str | None = None


def open_store(root: Path) -> Opened:
    """The store of the project at `root`. Always succeeds: what cannot be used is left alone or set aside, and said."""
    try:
        folder = project_folder(root)
        return _open_in(folder)
    except (OSError, sqlite3.OperationalError) as error:
        reason = f"{root / '.cutesmith'} cannot be written ({_words(error)})"
    except NewerSchema as error:
        reason = f"{root / '.cutesmith' / DATABASE} was written by a newer CuteSmith ({error}) and is left alone"
    store, folder = _open_elsewhere(root)
    return Opened(store, f"{reason}; results are kept in {folder}.")


def _open_elsewhere(root: Path) -> tuple[Store, Path]:
    folder = state_folder(root)
    try:
        return _open_in(folder).store, folder
    except (OSError, sqlite3.OperationalError, NewerSchema):
        folder = temporary_folder()
        return _open_in(folder).store, folder


def _open_in(folder: Path) -> Opened:
    """Open or make the folder's database; one process at a time, so that two never set aside the same file twice."""
    path = folder / DATABASE
    with _locked(folder / "store.lock"):
        try:
            return Opened(Store(_connect(path), folder))
        except (sqlite3.DatabaseError, ForeignDatabase) as error:
            if isinstance(error, sqlite3.DatabaseError) and not _is_damage(error):
                raise
            kept = _set_aside(path)
            why = "belongs to another program" if isinstance(error, ForeignDatabase) else f"is damaged ({error})"
            notice = f"{path} {why}: it was renamed to {kept.name}, and a new one was started."
            return Opened(Store(_connect(path), folder), notice)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(_DAMAGED)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    try:
        migrate(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise _damage(verdict)
    except BaseException:
        connection.close()
        raise
    return connection


def _damage(verdict: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(verdict.splitlines()[0])
    error.sqlite_errorname = "SQLITE_CORRUPT"
    return error


def _set_aside(path: Path) -> Path:
    """Rename a database with its journal files. Nothing is deleted."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = next(
        kept for n in range(1000) if not (kept := path.with_name(f"{path.name}.set-aside-{stamp}{n or ''}")).exists()
    )
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(kept.with_name(kept.name + suffix))
    return kept


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
