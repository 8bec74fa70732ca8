"""pygls's protocol without its own copies of documents (ours know LSP's line ends and are cheap on large files) and of
progress tokens (it never forgets one)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.protocol import LanguageServerProtocol, lsp_method

from cutesmith_server import protocol


@dataclass(frozen=True)
class PlainAnswer:
    """An answer to a request of ours, as JSON: what a model passes to a tool may have names that no tuple can have."""

    jsonrpc: str
    id: Any
    result: Any = None


@dataclass(frozen=True)
class ClassRequest:
    """A request of ours about a class. (pygls makes named tuples of custom params, in which "class" has no name.)"""

    jsonrpc: str
    id: Any
    method: str
    params: Any = None


class CuteSmithProtocol(LanguageServerProtocol):
    """Passes document synchronisation and progress cancellation straight to the registered handlers."""

    _has_left = False

    def structure_message(self, data: dict[str, Any]) -> Any:
        """As pygls does; but what cannot be read is answered, or taken for a refusal: else somebody waits for ever."""
        if data.get("method") in protocol.CLASS_REQUESTS and {"jsonrpc", "id"} <= data.keys():
            return ClassRequest(data["jsonrpc"], data["id"], data["method"], data.get("params"))
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if isinstance(number := data.get("id"), int | str):
                answer = self._send_response if "method" in data else self._handle_response
                answer(number, error=error.to_response_error())
            raise

    @lru_cache  # as pygls has it: there is one protocol in a process  # noqa: B019
    def get_result_type(self, method: str) -> type[Any] | None:
        """As pygls does, for requests of LSP's own."""
        return PlainAnswer if method in protocol.CLIENT_REQUESTS else super().get_result_type(method)

    def handle_message(self, message: Any) -> None:
        """As pygls does, which leaves requests after a shutdown without an answer."""
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            refusal = JsonRpcInvalidRequest("The server is shutting down.")
            self._send_response(message.id, error=refusal.to_response_error())
            return
        super().handle_message(message)

    def _handle_response(self, msg_id: Any, result: Any | None = None, error: Any | None = None) -> None:
        """As pygls does, which trips over an answer to what nobody waits for any more."""
        waiting = self._request_futures.get(msg_id)
        if waiting is not None and waiting.done():
            del self._request_futures[msg_id]
            return
        super()._handle_response(msg_id, result, error)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *arguments: Any) -> Generator[Any, Any, None]:
        """As pygls does, which trips over requests that are still open: a question nobody answered."""
        for number, future in tuple(self._request_futures.items()):
            if number != self.msg_id:
                future.cancel()
        yield from super().lsp_shutdown(*arguments)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *arguments: Any) -> Generator[Any, Any, None]:
        """As pygls does, which then complains of every answer that comes too late to be sent."""
        self._has_left = True
        yield from super().lsp_exit(*arguments)

    def _send_data(self, data: Any) -> None:
        if not self._has_left:
            super()._send_data(data)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.WINDOW_WORK_DONE_PROGRESS_CANCEL], (params,), None
