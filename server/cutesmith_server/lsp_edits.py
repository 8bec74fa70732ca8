"""A planned change as the WorkspaceEdit that the editor applies, in the richest form it understands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_agent.source.edits import Edit
from cutesmith_server import uris
from cutesmith_server.documents import Document, Text

if TYPE_CHECKING:
    from cutesmith_server.changes import Change
    from cutesmith_server.client import Client

_START = types.Range(types.Position(0, 0), types.Position(0, 0))


def edit_of(
    uri: str, text: Text, document: Document | None, edits: Iterable[Edit], client: Client
) -> types.WorkspaceEdit:
    """Edits of one file, bound to the document's version where the editor knows versions."""
    text_edits = [types.TextEdit(text.range_of(edit.start, edit.end), edit.text) for edit in edits]
    if not client.takes_document_changes:
        return types.WorkspaceEdit(changes={uri: text_edits})
    return types.WorkspaceEdit(document_changes=[_document_edit(uri, document, text_edits)])


def whole_edit(change: Change, uri: str, text: Text, document: Document | None, client: Client) -> types.WorkspaceEdit:
    """The module's hunks with the kernel's file created or deleted: one edit, and so one undo."""
    edit = edit_of(uri, text, document, change.edits, client)
    if change.write is None and not change.delete:
        return edit
    kernel = uris.from_path(change.kernel)
    steps = list(edit.document_changes or ())
    if change.write is not None:
        create = types.CreateFile(kernel, options=types.CreateFileOptions(overwrite=change.kernel.exists()))
        steps = [create, _document_edit(kernel, None, [types.TextEdit(_START, change.write)]), *steps]
    if change.delete:
        steps.append(types.DeleteFile(kernel))
    return types.WorkspaceEdit(document_changes=steps)


def _document_edit(uri: str, document: Document | None, edits: list[types.TextEdit]) -> types.TextDocumentEdit:
    version = document.version if document else None
    return types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), list(edits))
