"""The editor at the other end: what it can do, and the questions and edits sent to it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

log = logging.getLogger(__name__)


class Client:
    """Asks the editor only for what it said it supports."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server

    @property
    def _capabilities(self) -> types.ClientCapabilities:
        return self._server.client_capabilities

    @property
    def takes_document_changes(self) -> bool:
        return bool(get_capability(self._capabilities, "workspace.workspace_edit.document_changes"))

    def edits_files(self, kind: types.ResourceOperationKind) -> bool:
        """Whether an edit may also create, or delete, files."""
        operations = get_capability(self._capabilities, "workspace.workspace_edit.resource_operations") or ()
        return self.takes_document_changes and kind in operations

    @property
    def takes_annotations(self) -> bool:
        """Whether an edit may say of each change what it is for."""
        edits = self._capabilities.workspace.workspace_edit if self._capabilities.workspace else None
        return self.takes_document_changes and edits is not None and edits.change_annotation_support is not None

    @property
    def shows_progress(self) -> bool:
        return bool(get_capability(self._capabilities, "window.work_done_progress"))

    @property
    def shows_related_information(self) -> bool:
        return bool(get_capability(self._capabilities, "text_document.publish_diagnostics.related_information"))

    @property
    def links_codes(self) -> bool:
        return bool(get_capability(self._capabilities, "text_document.publish_diagnostics.code_description_support"))

    @property
    def nests_symbols(self) -> bool:
        return bool(
            get_capability(self._capabilities, "text_document.document_symbol.hierarchical_document_symbol_support")
        )

    @property
    def shows_server_status(self) -> bool:
        return self._has_experimental("serverStatusNotification")

    @property
    def has_language_models(self) -> bool:
        """Whether the editor lets us ask a language model of its own."""
        return self._has_experimental("languageModel")

    def _has_experimental(self, name: str) -> bool:
        experimental = self._capabilities.experimental
        if isinstance(experimental, dict):
            return bool(experimental.get(name))
        return bool(getattr(experimental, name, False))

    @property
    def watches_files(self) -> bool:
        return bool(get_capability(self._capabilities, "workspace.did_change_watched_files.dynamic_registration"))

    @property
    def shares_configuration(self) -> bool:
        return bool(get_capability(self._capabilities, "workspace.configuration"))

    @property
    def takes_code_actions(self) -> bool:
        """False: it only knows bare commands as code actions."""
        return get_capability(self._capabilities, "text_document.code_action.code_action_literal_support") is not None

    @property
    def reads_markdown(self) -> bool:
        formats = get_capability(self._capabilities, "text_document.hover.content_format") or ()
        return types.MarkupKind.Markdown in formats

    def say(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        self._server.window_show_message(types.ShowMessageParams(kind, message))

    def refuse(self, message: str) -> None:
        """Tells why something that was asked for was not done."""
        self.say(message, types.MessageType.Warning)

    async def ask(self, question: str, yes: str, no: str = "Cancel") -> bool:
        """Whether the user chose `yes`. No answer, or an editor that cannot ask, is a no."""
        actions = [types.MessageActionItem(yes), types.MessageActionItem(no)]
        params = types.ShowMessageRequestParams(types.MessageType.Warning, question, actions)
        try:
            answer = await self._server.window_show_message_request_async(params)
        except JsonRpcException as error:
            log.warning("the editor did not ask %r: %s", question, error)
            return False
        return answer is not None and answer.title == yes

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to a request of our own, as JSON. Cancelled, it cancels the request. Raises JsonRpcException."""
        number = str(uuid4())
        wire = self._server.protocol
        try:
            return await wire.send_request_async(method, params, number)
        except asyncio.CancelledError:
            wire.notify(types.CANCEL_REQUEST, types.CancelParams(number))
            raise

    async def apply(self, label: str, edit: types.WorkspaceEdit) -> str | None:
        """None when the edit was applied, else why not."""
        try:
            result = await self._server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label))
        except JsonRpcException as error:
            return str(error)
        return None if result.applied else (result.failure_reason or "the editor gave no reason")

    async def open(self, uri: str, selection: types.Range | None = None) -> bool:
        """Whether the editor shows the document now."""
        if not get_capability(self._capabilities, "window.show_document.support"):
            return False
        try:
            params = types.ShowDocumentParams(uri, take_focus=True, selection=selection)
            return (await self._server.window_show_document_async(params)).success
        except JsonRpcException:
            return False

    def refresh(self) -> None:
        """Asks for lenses and inlay hints to be asked for again."""
        if get_capability(self._capabilities, "workspace.code_lens.refresh_support"):
            self._server.workspace_code_lens_refresh(None)
        if get_capability(self._capabilities, "workspace.inlay_hint.refresh_support"):
            self._server.workspace_inlay_hint_refresh(None)
