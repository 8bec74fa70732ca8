"""Tells the editor what is news: job states, diagnostics, and that its lenses are out of date."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

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
        self._lens_refresh: asyncio.TimerHandle | None = None

    def states(self, views: Iterable[ClassView]) -> None:
        news = [(view.key, state) for view in views if self._states.get(view.key) != (state := view.job_state())]
        for key, state in news:
            self._states[key] = state
            self._server.protocol.notify(protocol.JOB_CHANGED, state.as_wire())
        if news:
            self._refresh_lenses_soon()

    def diagnostics(self, uri: str, found: list[types.Diagnostic]) -> None:
        if self._published.get(uri, []) != found:
            self._published[uri] = found
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found))

    def _refresh_lenses_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if self._lens_refresh is None or self._lens_refresh.when() <= loop.time():
            self._lens_refresh = loop.call_later(_LENS_REFRESH_S, self._client.refresh_lenses)
