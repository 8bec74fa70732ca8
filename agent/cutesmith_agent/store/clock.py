"""The time that a store writes: what comes later is later, though the machine's clock was set back meanwhile."""

from __future__ import annotations

import math
import sqlite3
import time


def now(rows: sqlite3.Connection) -> float:
    """Seconds since the epoch, or a little more than the latest that a job, a decision or a capture has."""
    (latest,) = rows.execute(
        "SELECT max((SELECT coalesce(max(ended), 0) FROM jobs), (SELECT coalesce(max(at), 0) FROM decisions),"
        " (SELECT coalesce(max(at), 0) FROM captures))"
    ).fetchone()
    return max(time.time(), math.nextafter(latest, math.inf))
