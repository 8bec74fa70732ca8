"""Which folders' code the user allowed to run. Opening a file runs nothing; generating does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from cutesmith_server.remembered import Remembered
from cutesmith_server.state_folder import state_folder

Ask = Callable[[Path], Awaitable[bool]]


class TrustGate:
    """Asks once per folder, remembers a yes on disk, and shares a pending question between its callers."""

    def __init__(self, ask: Ask, record: Path | None = None) -> None:
        self._ask = ask
        self._folders = Remembered(record or state_folder() / "trust.json", "folders")
        self._asking: dict[Path, asyncio.Future[bool]] = {}

    def is_given(self, folder: Path, *, client_says: bool | None) -> bool:
        """Whether code of `folder` may run, without asking. A client with a trust of its own is believed either way."""
        if client_says is not None:
            return client_says
        return any(folder.resolve().is_relative_to(known) for known in self._folders.names())

    async def allows(self, folder: Path, *, client_says: bool | None) -> bool:
        """Whether code of `folder` may run; asks where nothing is known."""
        if client_says is not None or self.is_given(folder, client_says=client_says):
            return client_says is not False
        folder = folder.resolve()
        allowed = await self._ask_once(folder)
        if allowed:
            self._folders.add(str(folder))
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
