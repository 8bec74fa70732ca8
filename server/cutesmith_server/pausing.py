"""Jobs that were paused, by the user or by the end of an earlier server: going on with one, or giving it up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cutesmith_server import sessions
from cutesmith_server.errors import RefusedError
from cutesmith_server.jobs import ClassKey
from cutesmith_server.orders import Priority

if TYPE_CHECKING:
    from cutesmith_server.studio import Studio


async def resume(studio: Studio, key: ClassKey) -> None:
    """The job goes on with what it found out; the class may have changed meanwhile. Raises RefusedError."""
    from cutesmith_server.generating import start

    session, order = studio.sessions.get(key), studio.orders.get(key)
    if session is None or not session.is_paused or order is None:
        raise RefusedError(f"No job on {key.qualname} is paused: generate a kernel.")
    await start(studio, key, replace(order, priority=Priority.ASKED))


def drop(studio: Studio, key: ClassKey) -> bool:
    """Gives a paused job up; False where there is none."""
    session = studio.sessions.get(key)
    if session is None or not session.is_paused:
        return False
    studio.pending.forget(key)
    studio.update(key, sessions.dropped(session))
    return True
