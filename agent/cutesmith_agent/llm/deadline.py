"""A coroutine run to its end or to its deadline, whichever comes first: its waits, connections and reads included."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
Tell = Callable[[str], None]
_GRACE_S = 2.0  # for what was cancelled to end; a name look-up cannot be, and is left behind


class DeadlineError(Exception):
    """The time was up."""


def within(seconds: float, work: Callable[[Tell], Awaitable[T]], on_progress: Tell) -> T:
    """What `work` returns or raises. It is given what takes its progress, which is told in the caller's thread.

    Raises DeadlineError."""
    run = _Run(work, seconds)
    threading.Thread(target=run.run, daemon=True).start()
    latest = time.monotonic() + seconds + _GRACE_S
    try:
        while (said := run.news.get(timeout=max(0.0, latest - time.monotonic()))) is not None:
            on_progress(said)
        return run.end.result()
    except Empty:
        raise DeadlineError from None
    finally:
        run.cancel()


class _Run(Generic[T]):
    """A coroutine in a thread of its own, so that the caller's is free for signals."""

    def __init__(self, work: Callable[[Tell], Awaitable[T]], seconds: float) -> None:
        self.news: SimpleQueue[str | None] = SimpleQueue()  # None: it has ended
        self.end: Future[T] = Future()
        self._work, self._seconds = work, seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None

    def run(self) -> None:
        try:
            self.end.set_result(asyncio.run(self._bounded()))
        except BaseException as error:  # noqa: BLE001 - a thread's boundary: the caller raises it
            self.end.set_exception(error)
        self.news.put(None)

    async def _bounded(self) -> T:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        scope = asyncio.timeout(self._seconds)
        try:
            async with scope:
                return await self._work(self.news.put)
        except TimeoutError:
            if scope.expired():
                raise DeadlineError from None
            raise

    def cancel(self) -> None:
        """Where the caller was interrupted, nothing more is sent; where it ended, this does nothing."""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
