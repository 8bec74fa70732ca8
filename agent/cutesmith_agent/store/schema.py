"""The tables, as the migrations that make them. A migration that was ever released is never edited."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

APPLICATION_ID = 0x43755365  # "CuSe": tells our file from another program's

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        key TEXT NOT NULL,             -- SHA-256 of all that the job depends on: equal keys may resume one another
        kind TEXT NOT NULL,
        file TEXT NOT NULL,
        qualname TEXT NOT NULL,
        class_hash TEXT,
        state TEXT NOT NULL CHECK (state IN ('running', 'done', 'cancelled')),
        started REAL NOT NULL,         -- seconds since the epoch, here and below
        ended REAL,
        report TEXT                    -- JSON
    );
    CREATE INDEX jobs_by_key ON jobs (key, started);
    CREATE INDEX jobs_by_class ON jobs (file, qualname, started);
    CREATE TABLE candidates (
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        path TEXT NOT NULL,            -- of the source, relative to the store's folder
        environment TEXT NOT NULL,     -- JSON: what the verdict holds for
        record TEXT NOT NULL,          -- JSON of types.Candidate
        PRIMARY KEY (job, id)
    );
    CREATE TABLE transitions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        candidate TEXT,
        stage TEXT NOT NULL,
        message TEXT NOT NULL,
        at REAL NOT NULL
    );
    CREATE INDEX transitions_by_job ON transitions (job);
    CREATE TABLE decisions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        job TEXT,                      -- outlives the job it refers to
        candidate TEXT,
        decision TEXT NOT NULL CHECK (decision IN ('accepted', 'rejected', 'removed')),
        file TEXT NOT NULL,
        qualname TEXT NOT NULL,
        class_hash TEXT,
        kernel TEXT,                   -- absolute path of the accepted kernel file
        at REAL NOT NULL
    );
    CREATE INDEX decisions_by_class ON decisions (file, qualname, number);
    """,
    """
    CREATE TABLE calls (               -- what a model was asked and answered
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        digest TEXT NOT NULL,          -- SHA-256 of the model and the prompt: a resumed job finds its answers by it
        purpose TEXT NOT NULL,
        model TEXT NOT NULL,
        prompt TEXT NOT NULL,          -- JSON: the digests of its parts in prompt_parts
        reply TEXT NOT NULL,           -- JSON
        candidate TEXT,                -- made of the reply
        dollars REAL,                  -- null: no price known
        seconds REAL NOT NULL,
        at REAL NOT NULL
    );
    CREATE INDEX calls_by_job ON calls (job);
    CREATE TABLE prompt_parts (        -- most parts recur from call to call
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        digest TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (job, digest)
    );
    CREATE TABLE consents (            -- of this workspace's user, to code being sent to a host
        host TEXT PRIMARY KEY,
        granted INTEGER NOT NULL,
        at REAL NOT NULL
    );
    """,
    """
    CREATE TABLE captures (            -- how classes were built and called in the last run that had them
        file TEXT NOT NULL,
        qualname TEXT NOT NULL,
        record TEXT NOT NULL,          -- JSON: the signatures with their counts, and the time
        at REAL NOT NULL,
        PRIMARY KEY (file, qualname)
    );
    """,
    """
    CREATE TABLE trials (              -- what proposers were told of their drafts: a job that goes on is told the same
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        candidate TEXT NOT NULL,
        environment TEXT NOT NULL,     -- JSON: what the verdict holds for
        record TEXT NOT NULL,          -- JSON of types.Candidate, as it was before its last proof
        seconds REAL NOT NULL,         -- that the verdict took
        profiled TEXT,                 -- JSON of types.Candidate with the profilers' figures; null: not profiled
        profiling REAL,                -- seconds that those took
        PRIMARY KEY (job, candidate)
    );
    ALTER TABLE calls ADD COLUMN outcome TEXT;              -- JSON: what the reply amounted to; null: not known
    ALTER TABLE consents ADD COLUMN terms TEXT NOT NULL DEFAULT '{}';  -- JSON: what the project's settings asked for
    """,
    """
    CREATE TABLE reservations (        -- calls of models that were begun; the call's row takes the place of its own
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        model TEXT NOT NULL,
        purpose TEXT NOT NULL,
        usage TEXT NOT NULL,           -- JSON: the most tokens of each kind that it may take
        dollars REAL,                  -- the most that it may cost; null: no price known
        at REAL NOT NULL
    );
    CREATE INDEX reservations_by_job ON reservations (job);
    """,
    """
    ALTER TABLE jobs ADD COLUMN imported TEXT;  -- JSON: the hash of each of the project's files that the job's imports
    """,
)


class NewerSchema(Exception):  # noqa: N818 - the name says what happened
    """The file was written by a later version."""


class ForeignDatabase(Exception):  # noqa: N818 - the name says what happened
    """The file is some other program's."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring a database up to date, each step in a transaction of its own. An empty file becomes a new store.

    Raises NewerSchema or ForeignDatabase and then has changed nothing."""
    version = _version(connection)
    if version > len(migrations):
        raise NewerSchema(f"schema {version}, this version knows {len(migrations)}")
    for number in range(version, len(migrations)):
        steps = f"{migrations[number]}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number + 1};"
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {steps} COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    """Migrations done so far. A database of ours carries our id; one without tables is new."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or tables):
        raise ForeignDatabase(f"application id {application:#x}, {tables} tables")
    return connection.execute("PRAGMA user_version").fetchone()[0]
