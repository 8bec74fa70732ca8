"""When a file is looked at again to tell the editor what is new: at once, but not for most of the server's time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

_TYPING_S = 0.2
_SHARE = 5  # of the time at most one part in so many, where a hundred jobs begin at a time in a large file ...
_AT_ONCE_S = 0.1  # ... beyond so much work, which is done at once


class Refreshing:
    """One timer a file at most."""

    def __init__(self, refresh: Callable[[Path], None]) -> None:
        self._refresh = refresh
        self._timers: dict[Path, asyncio.TimerHandle] = {}
        self._work = 0.0  # seconds of it that are not paid for by time that has passed
        self._since = 0.0

    def now(self, path: Path) -> None:
        """At once; where much has just been done, a moment later."""
        now = asyncio.get_running_loop().time()
        self._work, self._since = max(0.0, self._work - (now - self._since) / _SHARE), now
        due = now + (self._work - _AT_ONCE_S) * _SHARE
        if due <= now:
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
        self.forget(path)
        self._timers[path] = asyncio.get_running_loop().call_at(due, self._do, path)

    def _do(self, path: Path) -> None:
        self.forget(path)
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._refresh(path)
        self._work += loop.time() - began
