"""Tells the editor what is news: job states, diagnostics, and that its lenses are out of date."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from cutesmith_server import protocol
from cutesmith_server.jobs import ClassKey
from cutesmith_server.protocol import JobState
from cutesmith_server.views import ClassView

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from cutesmith_server.client import Client

_LENS_REFRESH_S = 0.1  # a job reports often, and the editor asks for every lens each time it is told to


class Telling:
    """Remembers what the editor was told last, and says nothing twice."""

    def __init__(self, server: LanguageServer, client: Client) -> None:
        self._server = server
        self._client = client
        self._states: dict[ClassKey, JobState] = {}
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._status: dict[str, Any] = {}
        self._lens_refresh: asyncio.TimerHandle | None = None

    def states(self, views: Iterable[ClassView]) -> None:
        news = [(view.key, state) for view in views if self._states.get(view.key) != (state := view.job_state())]
        for key, state in news:
            self._states[key] = state
            self._server.protocol.notify(protocol.JOB_CHANGED, state.as_wire())
        if news:
            self.refresh_lenses_soon()
            self._tell_status()

    def _tell_status(self) -> None:
        """One line on all classes, for editors that show one."""
        if not self._client.shows_server_status:
            return
        status = _status(self._states.values())
        if status != self._status:
            self._status = status
            self._server.protocol.notify(protocol.SERVER_STATUS, status)

    def diagnostics(self, uri: str, found: list[types.Diagnostic]) -> None:
        if self._published.get(uri, []) != found:
            self._published[uri] = found
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found))

    def refresh_lenses_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if self._lens_refresh is None or self._lens_refresh.when() <= loop.time():
            self._lens_refresh = loop.call_later(_LENS_REFRESH_S, self._client.refresh)


def _status(states: Iterable[JobState]) -> dict[str, Any]:
    """rust-analyzer's ServerStatusParams: quiescent while no job runs."""
    known = list(states)
    running = sorted(each.class_name for each in known if each.state == "running")
    offered = sum(each.state in ("ready", "compiled") for each in known)
    message = f"Making a CuTe kernel for {', '.join(running)}" if running else ""
    if not running and offered:
        message = f"{offered} CuTe kernel{'s' * (offered > 1)} on offer"
    return {"health": "ok", "quiescent": not running, "message": message}
