"""Classes on watch: when their file is saved, what was proved of them is proved again, and if asked a new kernel made.

Off by default; never in a folder that is not trusted; within minutes an hour; no model is asked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from cutesmith_agent.store.location import file_key
from cutesmith_server.agent_process import StageReached
from cutesmith_server.errors import RefusedError
from cutesmith_server.jobs import ClassKey, JobEvent
from cutesmith_server.orders import Order, Priority
from cutesmith_server.remembered import Remembered
from cutesmith_server.state_folder import state_folder

if TYPE_CHECKING:
    from cutesmith_server.documents import Document
    from cutesmith_server.studio import Studio
    from cutesmith_server.views import ClassView

log = logging.getLogger(__name__)

_HOUR_S = 3600.0


class Budget:
    """Seconds of work in the last hour."""

    def __init__(self) -> None:
        self._spent: deque[tuple[float, float]] = deque()  # when a job ended, and how long it had worked
        self._working: dict[ClassKey, float] = {}

    def begin(self, key: ClassKey) -> None:
        self._working.setdefault(key, time.monotonic())

    def end(self, key: ClassKey) -> None:
        if (since := self._working.pop(key, None)) is not None:
            self._spent.append((time.monotonic(), time.monotonic() - since))

    def left_s(self, minutes: float) -> float:
        now = time.monotonic()
        while self._spent and self._spent[0][0] < now - _HOUR_S:
            self._spent.popleft()
        working = sum(now - since for since in self._working.values())
        return minutes * 60 - working - sum(seconds for _, seconds in self._spent)


class ModuleWatch:
    """Looks at a file's classes when it is saved, and at a class again when a job that it began has ended."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._marks = Remembered(state_folder() / "watched.json", "classes")
        self._budget = Budget()
        self._tried: dict[ClassKey, str | None] = {}  # the class's hash that a new kernel was last wanted for
        self._overtaken: set[ClassKey] = set()  # its job is being ended: the class is another by now
        self._timers: dict[ClassKey, asyncio.TimerHandle] = {}

    def mark(self, key: ClassKey, *, on: bool) -> None:
        (self._marks.add if on else self._marks.remove)(_name(key))

    def is_marked(self, key: ClassKey) -> bool:
        return _name(key) in self._marks.names()

    def saved(self, document: Document) -> None:
        if self._studio.settings_of(document.path).watch == "off":
            return
        for view in self._studio.views(document):
            self._look(view)

    def noted(self, key: ClassKey, event: JobEvent) -> None:
        """An event of a job, not its last."""
        if self._is_ours(key) and isinstance(event, StageReached):
            if event.stage == "queued":
                self._pause_clock(key)
            elif key not in self._timers:
                self._budget.begin(key)
                left = self._budget.left_s(self._studio.settings_of(key.path).watch_minutes)
                self._timers[key] = asyncio.get_running_loop().call_later(max(left, 0.0), self._over_budget, key)

    def ended(self, key: ClassKey, *, finished: bool) -> None:
        """A class's job has ended; `finished`: it came to a report."""
        if not self._is_ours(key):
            return
        self._pause_clock(key)
        is_overtaken = key in self._overtaken
        self._overtaken.discard(key)
        if (finished or is_overtaken) and not self._studio.is_closed:
            self._look(self._studio.view(key))

    def _pause_clock(self, key: ClassKey) -> None:
        self._budget.end(key)
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()

    def _over_budget(self, key: ClassKey) -> None:
        log.info("the watch on %s has used its minutes of this hour", key.qualname)
        self._studio.jobs.cancel(key)

    def _is_ours(self, key: ClassKey) -> bool:
        order = self._studio.orders.get(key)
        return order is not None and order.priority is not Priority.ASKED

    def _look(self, view: ClassView) -> None:
        key, studio = view.key, self._studio
        settings = studio.settings_of(key.path)
        is_on = settings.watch == "all" or (settings.watch == "marked" and self.is_marked(key))
        if not is_on or not studio.is_trusted(key.path) or studio.unsaved_text(key.path) is not None:
            return
        if studio.jobs.runs(key):
            running = view.session.running
            if self._is_ours(key) and running is not None and running.digest != view.digest:
                self._overtaken.add(key)
                studio.jobs.cancel(key)
            return
        order = self._order(view, regenerates=settings.watch_regenerates)
        if order is not None and self._budget.left_s(settings.watch_minutes) > 0:
            self._begin(key, order)

    def _begin(self, key: ClassKey, order: Order) -> None:
        from cutesmith_server.generating import begin, require_startable

        try:
            require_startable(self._studio, key)
        except RefusedError as refusal:
            log.info("the watch on %s does nothing: %s", key.qualname, refusal)
        else:
            if order.priority is Priority.IDLE:
                self._tried[key] = self._studio.outline(key.path).digest(key.qualname)
            begin(self._studio, key, order)

    def _order(self, view: ClassView, *, regenerates: bool) -> Order | None:
        from cutesmith_server.generating import revalidation

        digest = self._studio.outline(view.key.path).digest(view.key.qualname)
        if digest is None or view.state == "paused":
            return None
        if view.needs_revalidation and (view.state == "stale" or view.drift):  # a new driver is no edit
            try:
                return replace(revalidation(self._studio, view.key), priority=Priority.SAVED)
            except RefusedError as refusal:
                log.info("the watch on %s does nothing: %s", view.key.qualname, refusal)
                return None
        wants = view.state in ("stale", "idle", "failed") or (view.state == "accepted" and bool(view.drift))
        is_marked = view.state in ("stale", "accepted") or self.is_marked(view.key)
        if not (regenerates and wants and is_marked) or self._tried.get(view.key) == digest:
            return None
        return Order(priority=Priority.IDLE)


def _name(key: ClassKey) -> str:
    return f"{file_key(key.path)}::{key.qualname}"
