"""What the server makes of a job's events: the class's session, its log and progress bar, and what follows its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cutesmith_server import sessions
from cutesmith_server.agent_process import ConsentAsked, Done
from cutesmith_server.consenting import Consents
from cutesmith_server.drift import content_id
from cutesmith_server.jobs import Cancelled, ClassKey, JobEvent, Paused

if TYPE_CHECKING:
    from cutesmith_server.studio import Studio
    from cutesmith_server.views import ClassView


class JobEvents:
    """The supervisor's listener."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._consents = Consents(studio)
        self._writing: set[asyncio.Task[None]] = set()

    def __call__(self, key: ClassKey, event: JobEvent) -> None:
        studio = self._studio
        session = studio.sessions[key] = sessions.after(studio.sessions[key], event)
        studio.logs.note(key, event)
        if isinstance(event, ConsentAsked):
            self._consents.asked(key, event)
        if session.running is not None:
            running = session.running
            studio.bars.report(key, f"{running.stage}: {running.message}", running.fraction)
            studio.watch.noted(key, event)
        else:
            self._ended(key, event)
        studio.tell(key)

    def _ended(self, key: ClassKey, event: JobEvent) -> None:
        studio = self._studio
        if not isinstance(event, Paused) and not studio.is_closed:
            studio.pending.forget(key)
        if isinstance(event, Done):
            studio.spent.add(event.report)
            studio.look_up(key.path)
        view = studio.view(key)
        studio.bars.end(key, view.message or view.state)
        self._note_validated(key, view)
        self._consents.ended(key)
        self._publish_kernels()
        studio.watch.ended(key, finished=not isinstance(event, Paused | Cancelled))

    def _publish_kernels(self) -> None:
        from cutesmith_server.publishing import is_kernel

        for document in self._studio.documents:
            if is_kernel(document):
                self._studio.publish(document)

    def _note_validated(self, key: ClassKey, view: ClassView) -> None:
        """An accepted kernel that was edited and then validated is proved again."""
        outcome, found = view.outcome, view.found
        if outcome is None or outcome.kind != "check" or outcome.best is None or found is None or not found.has_kernel:
            return
        kernel = key.path.with_name(f"{found.kernel}.py")
        if outcome.best.ok and content_id(kernel) == outcome.best.id:
            proved = {"candidate": outcome.best.id, "class_hash": outcome.digest, "kernel": kernel}
            task = asyncio.create_task(self._record(key, proved))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _record(self, key: ClassKey, proved: dict[str, Any]) -> None:
        await self._studio.record(key, "accepted", **proved)
        self._studio.tell(key)
