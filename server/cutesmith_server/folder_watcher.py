"""watchdog on the folders of open files, for editors that do not watch files themselves."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from cutesmith_agent.store.location import real_path

log = logging.getLogger(__name__)

_EVENTS: list[type[FileSystemEvent]] = [
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]


class FolderWatcher(FileSystemEventHandler):
    """Watches each folder it is given once; calls back on the event loop with the Python files that changed."""

    def __init__(self, on_change: Callable[[Path], None]) -> None:
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._folders: set[Path] = set()
        self._observer = Observer()
        self._observer.daemon = True
        self._observer.start()

    def add(self, folder: Path) -> None:
        if folder in self._folders or not folder.is_dir():
            return
        self._folders.add(folder)
        try:
            self._observer.schedule(self, str(folder), event_filter=_EVENTS)
        except OSError as error:  # inotify has limits
            log.warning("cannot watch %s: %s", folder, error)

    def stop(self) -> None:
        self._observer.stop()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Runs in the observer's thread."""
        for name in {os.fsdecode(event.src_path), os.fsdecode(event.dest_path)}:
            if name.endswith(".py") and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._on_change, real_path(name))
