"""Jobs that are not at their end, kept for a server that comes after one that ended meanwhile.

One file a job in the user's state folder, locked by the server that has the job: one that can be locked is left over.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from cutesmith_agent.store.location import file_key
from cutesmith_server.jobs import ClassKey
from cutesmith_server.orders import Order, Priority
from cutesmith_server.state_folder import state_folder

log = logging.getLogger(__name__)


class PendingJobs:
    """The jobs of this server, and those that were left over."""

    def __init__(self, folder: Path | None = None) -> None:
        self._given = folder
        self._kept: dict[ClassKey, IO[str]] = {}

    def keep(self, key: ClassKey, order: Order) -> None:
        """Remembers a job until `forget`; without effect where another server has one on the class, or where what the
        job is about ends with this server."""
        self.forget(key)
        if order.kind == "revalidate":
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = (self._folder / _name(key)).open("a+", encoding="utf-8")
        except OSError as error:
            log.warning("the job of %s will not outlive this server: %s", key.qualname, error)
            return
        if not _locks(file):
            file.close()
            return
        file.truncate(0)
        json.dump({"file": file_key(key.path), "class": key.qualname, "order": asdict(order)}, file)
        file.flush()
        self._kept[key] = file

    def forget(self, key: ClassKey) -> None:
        if (file := self._kept.pop(key, None)) is not None:
            Path(file.name).unlink(missing_ok=True)
            file.close()

    def left_over(self, path: Path) -> dict[ClassKey, Order]:
        """The jobs on a file's classes that no living server has; they are this server's from now on."""
        wanted, found = file_key(path), {}
        for each in self._folder.glob("*.json") if self._folder.is_dir() else ():
            if (read := self._adopt(each, path, wanted)) is not None:
                key, order = read
                found[key] = order
        return found

    def _adopt(self, file: Path, path: Path, wanted: str) -> tuple[ClassKey, Order] | None:
        try:
            stream = file.open("r+", encoding="utf-8")
        except OSError:
            return None
        read = _read(stream) if _locks(stream) else None
        if read is None or read[0] != wanted or (key := ClassKey(path, read[1])) in self._kept:
            stream.close()
            return None
        self._kept[key] = stream
        return key, read[2]

    @property
    def _folder(self) -> Path:
        return self._given or state_folder() / "jobs"


def _name(key: ClassKey) -> str:
    name = f"{file_key(key.path)}::{key.qualname}".encode("utf-8", "surrogatepass")
    return f"{hashlib.sha256(name).hexdigest()}.json"


def _locks(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(stream: IO[str]) -> tuple[str, str, Order] | None:
    """The file, the class and the order; None where it does not say (it may be another version's)."""
    try:
        data: Any = json.load(stream)
        order = data["order"]
        made = Order(
            order["kind"],
            tuple(map(str, order["candidates"])),
            bool(order["with_model"]),
            bool(order["allow_lowered"]),
            Priority(order["priority"]),
        )
        return (str(data["file"]), str(data["class"]), made) if made.kind in ("optimize", "check") else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
