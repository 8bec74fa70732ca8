"""A set of names that outlives the server: one JSON file in the user's state folder."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from cutesmith_server.files import write_atomically

log = logging.getLogger(__name__)


class Remembered:
    """`path` holds `{what: [names]}`. What cannot be written holds until the server ends."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._added: set[str] = set()
        self._removed: set[str] = set()

    def names(self) -> set[str]:
        return (self._on_disk() | self._added) - self._removed

    def add(self, name: str) -> None:
        self._added.add(name)
        self._removed.discard(name)
        self._write()

    def remove(self, name: str) -> None:
        self._removed.add(name)
        self._added.discard(name)
        self._write()

    def _on_disk(self) -> set[str]:
        try:
            return {str(name) for name in json.loads(self._path.read_bytes())[self._what]}
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("cannot read %s (%s): nothing of it counts", self._path, error)
            return set()

    def _write(self) -> None:
        data = json.dumps({self._what: sorted(self.names())}, indent=1) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, data.encode("utf-8", "surrogateescape"), mode=0o600)
        except OSError as error:
            log.warning("cannot write %s (%s): it holds until the server ends", self._path, error)
