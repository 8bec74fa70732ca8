"""Which folders' code the user allowed to run. Opening a file runs nothing; generating does."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from cutesmith_server.files import write_atomically

log = logging.getLogger(__name__)

Ask = Callable[[Path], Awaitable[bool]]


class TrustGate:
    """Asks once per folder, remembers a yes on disk, and shares a pending question between its callers."""

    def __init__(self, ask: Ask, record: Path | None = None) -> None:
        self._ask = ask
        self._record = record or _default_record()
        self._allowed: set[Path] = set()
        self._asking: dict[Path, asyncio.Future[bool]] = {}

    async def allows(self, folder: Path, *, client_says: bool | None) -> bool:
        """Whether code of `folder` may run. A client with a trust of its own is believed either way."""
        if client_says is not None:
            return client_says
        folder = folder.resolve()
        if any(folder.is_relative_to(known) for known in self._allowed | self._remembered()):
            return True
        allowed = await self._ask_once(folder)
        if allowed:
            self._remember(folder)
        return allowed

    async def _ask_once(self, folder: Path) -> bool:
        if folder not in self._asking:
            self._asking[folder] = asyncio.ensure_future(self._ask(folder))
        question = self._asking[folder]
        try:
            return await asyncio.shield(question)
        finally:
            if question.done():
                self._asking.pop(folder, None)

    def _remembered(self) -> set[Path]:
        try:
            return {Path(folder) for folder in json.loads(self._record.read_bytes())["folders"]}
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("cannot read %s (%s): every folder will be asked about", self._record, error)
            return set()

    def _remember(self, folder: Path) -> None:
        self._allowed.add(folder)
        folders = sorted(str(known) for known in self._remembered() | {folder})
        try:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._record, (json.dumps({"folders": folders}, indent=1) + "\n").encode(), mode=0o600)
        except OSError as error:
            log.warning("cannot write %s (%s): the answer holds until the server ends", self._record, error)


def _default_record() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "cutesmith" / "trust.json"
