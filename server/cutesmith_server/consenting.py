"""Asking in the editor, once per workspace and host, whether code may be sent to a model; then the job starts again."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from cutesmith_server.agent_process import ConsentAsked
from cutesmith_server.errors import RefusedError
from cutesmith_server.jobs import ClassKey
from cutesmith_server.orders import Order

if TYPE_CHECKING:
    from cutesmith_server.studio import Studio

log = logging.getLogger(__name__)


class Consents:
    """What ended jobs asked the user for."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._asked: dict[ClassKey, ConsentAsked] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def asked(self, key: ClassKey, event: ConsentAsked) -> None:
        """A running job lacks consent; it ends of itself."""
        self._asked[key] = event

    def ended(self, key: ClassKey) -> None:
        """The class's job has ended: now there is time to ask."""
        if (event := self._asked.pop(key, None)) is not None and not self._studio.is_closed:
            self._tasks.add(task := asyncio.create_task(self._ask(key, event), name=f"consent {key.qualname}"))
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, key: ClassKey, event: ConsentAsked) -> None:
        from cutesmith_server.generating import start
        from cutesmith_server.records import STORE_ERRORS

        if not await self._studio.client.ask(event.question, "Allow", "Not now"):
            return
        try:
            await asyncio.to_thread(_grant, key.path, event)
            await start(self._studio, key, Order(with_model=True))
        except STORE_ERRORS as error:
            self._studio.client.refuse(f"Your answer could not be kept ({error}): nothing was sent.")
        except RefusedError as refusal:
            self._studio.client.refuse(str(refusal))


def _grant(file: Path, event: ConsentAsked) -> None:
    from cutesmith_agent.store.location import workspace_root
    from cutesmith_agent.store.opening import open_store

    with open_store(workspace_root(file)).store as store:
        store.set_consent(event.host, granted=True, terms=event.terms)
