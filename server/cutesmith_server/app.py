"""The language server: which LSP messages it answers, and with what.

Everything needed before `initialize` is answered is imported here; the rest where it is first used.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer

from cutesmith_server import commands, lifetime, protocol, uris
from cutesmith_server.lsp_protocol import CuteSmithProtocol
from cutesmith_server.studio import Studio
from cutesmith_server.version import VERSION

if TYPE_CHECKING:
    from pygls.server import ServerErrors

log = logging.getLogger(__name__)

_CODE_ACTION_KINDS = [types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite]


class CuteSmithServer(LanguageServer):
    """A pygls server with a studio."""

    def __init__(self) -> None:
        super().__init__(protocol.SERVER_NAME, VERSION, protocol_cls=CuteSmithProtocol)
        self.studio = Studio(self)
        self._is_reporting = False

    def report_server_error(self, error: Exception, source: ServerErrors) -> None:
        """One sentence for the user; a request's own answer carries its error already."""
        log.error("%s: %s", source.__name__, error)
        if source is FeatureRequestError or self._is_reporting:
            return  # what cannot be sent cannot be told either
        self._is_reporting = True
        try:
            self.studio.client.refuse("CuteSmith could not handle a message of the editor: see its log.")
        finally:
            self._is_reporting = False


def create_server() -> CuteSmithServer:
    server = CuteSmithServer()
    _register_lifetime(server, server.studio)
    _register_documents(server, server.studio)
    _register_features(server, server.studio)
    _register_requests(server, server.studio)
    commands.register(server, server.studio)
    return server


def _register_lifetime(server: CuteSmithServer, studio: Studio) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        studio.documents.encoding = _encoding(server)
        studio.configuration.initialize(params.initialization_options)
        lifetime.end_with_client(studio, params.process_id)

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        from cutesmith_server.watching import watch

        await watch(studio, server)

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await studio.close()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        await _take_configuration(server, studio, params.settings)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel_progress(params: types.WorkDoneProgressCancelParams) -> None:
        if (key := studio.bars.job_of(params.token)) is not None:
            studio.jobs.cancel(key)


def _register_documents(server: CuteSmithServer, studio: Studio) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        if (document := studio.documents.open(params.text_document)) is not None:
            studio.opened(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        if (document := studio.documents.get(params.text_document.uri)) is not None:
            document.apply(params.text_document.version, params.content_changes)
            studio.edited(document)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        if (document := studio.documents.get(params.text_document.uri)) is not None:
            studio.saved(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        if (document := studio.documents.get(params.text_document.uri)) is not None:
            studio.documents.close(document)
            studio.closed(document)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        for change in params.changes:
            if (path := uris.to_path(change.uri)) is not None:
                studio.changed_on_disk(path)


def _register_features(server: CuteSmithServer, studio: Studio) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        from cutesmith_server.lenses import lenses

        document = studio.documents.get(params.text_document.uri)
        if document is None:
            return []
        return [lens for view in studio.views(document) for lens in lenses(view, document.text)]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=_CODE_ACTION_KINDS))
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        from cutesmith_server.actions import actions

        document = studio.documents.get(params.text_document.uri)
        return [] if document is None else actions(studio, document, params)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def text_document_hover(params: types.HoverParams) -> types.Hover | None:
        from cutesmith_server.hover import hover

        document = studio.documents.get(params.text_document.uri)
        return None if document is None else hover(studio, document, params.position)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        from cutesmith_server.inlays import inlay

        document = studio.documents.get(params.text_document.uri)
        views = [] if document is None else studio.views(document)
        hints = (inlay(view, document.text) for view in views if document is not None)
        return [hint for hint in hints if hint is not None and _is_in(hint.position, params.range)]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def document_symbol(
        params: types.DocumentSymbolParams,
    ) -> list[types.DocumentSymbol] | list[types.SymbolInformation]:
        from cutesmith_server.publishing import is_kernel
        from cutesmith_server.symbols import flat, symbols

        document = studio.documents.get(params.text_document.uri)
        if document is None or not is_kernel(document):
            return []
        found = symbols(document, studio.outline(document.path))
        return found if studio.client.nests_symbols else flat(found, document.uri)


def _register_requests(server: CuteSmithServer, studio: Studio) -> None:
    @server.feature(protocol.JOBS)
    def jobs(params: Any) -> dict[str, Any]:
        return {"jobs": [view.job_state().as_wire() for view in studio.known()]}

    @server.feature(protocol.MODULES)
    def modules(params: Any) -> dict[str, Any]:
        from cutesmith_server.kernels_view import modules

        return modules(studio)

    @server.feature(protocol.PROPOSAL)
    def proposal(params: Any) -> dict[str, Any] | None:
        from cutesmith_server.reviewing import proposal

        return proposal(studio, commands.class_named_in(params))

    @server.feature(protocol.REPORT)
    async def report(params: Any) -> dict[str, Any] | None:
        from cutesmith_server.reviewing import report

        return await report(studio, commands.class_named_in(params))


def _is_in(position: types.Position, span: types.Range) -> bool:
    start, here, end = ((each.line, each.character) for each in (span.start, position, span.end))
    return start <= here <= end


def _encoding(server: CuteSmithServer) -> Any:
    encoding = server.workspace.position_encoding
    return encoding.value if isinstance(encoding, types.PositionEncodingKind) else encoding


async def _take_configuration(server: CuteSmithServer, studio: Studio, pushed: Any) -> None:
    """Settings as the editor pushes them, or asked for where it only says that they changed."""
    section = protocol.SERVER_NAME
    values = pushed.get(section) if isinstance(pushed, dict) else None
    if values is None and studio.client.shares_configuration:
        params = types.ConfigurationParams([types.ConfigurationItem(section=section)])
        values = next(iter(await server.workspace_configuration_async(params)), None)
    if values is not None:
        studio.configuration.change(values)
