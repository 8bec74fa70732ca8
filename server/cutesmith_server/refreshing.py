"""When a file is looked at again to tell the editor what is new: at once, but not over and over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

_TYPING_S = 0.2
_PAUSE_S = 0.05  # a hundred jobs may begin at a time, and each changes what its file shows
_SHARE = 5  # of the time at most one part in so many


class Refreshing:
    """One timer a file at most."""

    def __init__(self, refresh: Callable[[Path], None]) -> None:
        self._refresh = refresh
        self._timers: dict[Path, asyncio.TimerHandle] = {}
        self._next: dict[Path, float] = {}  # not before

    def now(self, path: Path) -> None:
        """At once; where that has just been done, a moment later."""
        loop = asyncio.get_running_loop()
        due = self._next.get(path, 0.0)
        if loop.time() >= due:
            self._do(path)
        elif path not in self._timers or self._timers[path].when() > due:
            self._at(due, path)

    def typed(self, path: Path) -> None:
        """Once the typing pauses."""
        self._at(asyncio.get_running_loop().time() + _TYPING_S, path)

    def forget(self, path: Path) -> None:
        if (timer := self._timers.pop(path, None)) is not None:
            timer.cancel()

    def close(self) -> None:
        for path in tuple(self._timers):
            self.forget(path)

    def _at(self, due: float, path: Path) -> None:
        if path in self._timers:
            self._timers[path].cancel()
        self._timers[path] = asyncio.get_running_loop().call_at(due, self._do, path)

    def _do(self, path: Path) -> None:
        self.forget(path)
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._refresh(path)
        ended = loop.time()
        self._next[path] = ended + max(_PAUSE_S, _SHARE * (ended - began))
