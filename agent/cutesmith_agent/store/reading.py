"""Rows that hold what no store of ours writes: their readers say so as SQLite says that a file is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reading(table: str) -> Iterator[None]:
    """Around what reads rows of a table, or its decorator. Raises sqlite3.DataError where one makes no sense."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ExceptionGroup) as error:
        raise sqlite3.DataError(f"it is damaged: a row of {table} makes no sense") from error
