"""How long calls of the user's modules take, and what part of their outermost module's that is.

On a CUDA device by events on the current stream, so nothing waits; else by the clock. Backward passes are not in it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Any

_PENDING = 256  # pairs of events, after which the finished ones are read


class Stopwatch:
    """One per process. A class that calls itself counts once, in its outermost call."""

    def __init__(self) -> None:
        self._cuda = sys.modules["torch"].cuda
        self._local = threading.local()
        self.reset()

    def reset(self) -> None:
        """Forget everything: in a forked child it is the parent's."""
        self._seconds: dict[Any, float] = {}
        self._calls: dict[Any, int] = {}
        self._outer_s = 0.0
        self._pending: deque[tuple[Any, bool, Any, Any]] = deque()
        self._lock = threading.Lock()
        self._local = threading.local()

    def start(self, entry: Any) -> Any:
        """What `stop` wants, at the end of the same call."""
        try:
            running = self._local.__dict__.setdefault("running", [])
            is_first, is_outer = entry not in running, not running
            running.append(entry)
            return (running, entry, is_first, is_outer, self._now() if is_first else None)
        except Exception:  # noqa: BLE001 - the user's module is called all the same
            return None

    def stop(self, begun: Any) -> None:
        try:
            if begun is not None:
                self._stop(*begun)
        except Exception:  # noqa: BLE001
            return

    def _stop(self, running: list[Any], entry: Any, is_first: bool, is_outer: bool, started: Any) -> None:
        running.pop()
        ended = self._now() if is_first else None
        if ended is None or type(started) is not type(ended):  # a CUDA graph's capture began or ended within
            return
        self._calls[entry] = self._calls.get(entry, 0) + 1
        if type(started) is float:
            self._add(entry, is_outer, ended - started)
            return
        self._pending.append((entry, is_outer, started, ended))
        if len(self._pending) >= _PENDING:
            self._read(wait=False)

    def _now(self) -> Any:
        if not self._cuda.is_initialized() or self._cuda.is_current_stream_capturing():
            return time.perf_counter()
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def _add(self, entry: Any, is_outer: bool, seconds: float) -> None:
        self._seconds[entry] = self._seconds.get(entry, 0.0) + seconds
        self._outer_s += seconds if is_outer else 0.0

    def _read(self, *, wait: bool) -> None:
        """In order, until one that is not finished."""
        with self._lock:
            while self._pending:
                entry, is_outer, started, ended = self._pending[0]
                if wait:
                    ended.synchronize()
                elif not ended.query():
                    return
                self._add(entry, is_outer, started.elapsed_time(ended) / 1e3)
                self._pending.popleft()

    def lines(self) -> list[dict[str, Any]]:
        """A line a class: its seconds, and those of the outermost modules of this process."""
        self._read(wait=True)
        return [
            {
                "file": entry.file,
                "class": entry.qualname,
                "seconds": seconds,
                "timed": self._calls[entry],
                "outer_s": self._outer_s,
            }
            for entry, seconds in self._seconds.items()
        ]
