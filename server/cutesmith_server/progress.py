"""One progress bar per job in the editor, each with a token of its own and a cancel button."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from cutesmith_server.jobs import ClassKey

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from cutesmith_server.client import Client


class ProgressBars:
    """Bars by class. Every method is harmless where the editor shows none."""

    def __init__(self, server: LanguageServer, client: Client) -> None:
        self._server = server
        self._client = client
        self._tokens: dict[ClassKey, str] = {}

    async def begin(self, key: ClassKey, title: str, is_running: Callable[[ClassKey], bool]) -> None:
        """Shows a bar for a job that has begun, unless it has ended by the time the editor is ready."""
        if not self._client.shows_progress:
            return
        token = str(uuid.uuid4())
        try:
            await self._server.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))
        except JsonRpcException:
            return
        if not is_running(key):
            return
        self.end(key, "another job on the class has begun")  # whose editor was slow to get ready
        self._tokens[key] = token
        self._send(token, types.WorkDoneProgressBegin(title, cancellable=True, message="queued", percentage=0))

    def report(self, key: ClassKey, message: str, fraction: float) -> None:
        if (token := self._tokens.get(key)) is not None:
            percentage = round(100 * min(max(fraction, 0.0), 1.0))
            report = types.WorkDoneProgressReport(cancellable=True, message=message, percentage=percentage)
            self._send(token, report)

    def end(self, key: ClassKey, message: str) -> None:
        if (token := self._tokens.pop(key, None)) is not None:
            self._send(token, types.WorkDoneProgressEnd(message=message))

    def job_of(self, token: int | str) -> ClassKey | None:
        return next((key for key, known in self._tokens.items() if known == token), None)

    def _send(
        self,
        token: str,
        value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd,
    ) -> None:
        self._server.progress(types.ProgressParams(token, value))
