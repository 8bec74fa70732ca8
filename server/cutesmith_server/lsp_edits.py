"""A planned change as the WorkspaceEdit that the editor applies, in the richest form it understands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_agent.source.edits import Edit
from cutesmith_server import uris
from cutesmith_server.documents import Document, Text

if TYPE_CHECKING:
    from cutesmith_server.changes import Change
    from cutesmith_server.client import Client

_START = types.Range(types.Position(0, 0), types.Position(0, 0))
_IMPORT, _GUARD, _KERNEL, _OUT = "cutesmith.import", "cutesmith.guard", "cutesmith.kernel", "cutesmith.out"
_ANNOTATIONS = {
    _IMPORT: ("Import the kernel's module", "It loads torch and nothing else."),
    _GUARD: (
        "Hand over to the kernel",
        "At the top of forward, where `supports` is true; else the code below runs.",
    ),
    _KERNEL: ("The kernel's file", "What was proved, byte for byte."),
    _OUT: ("Take the kernel out", "The import and the lines at the top of forward."),
}


@dataclass(frozen=True)
class Form:
    """How the editor takes an edit. `confirm`: it asks about each change first, where it can."""

    documents: bool
    annotations: bool
    confirm: bool = False

    @classmethod
    def of(cls, client: Client, *, confirm: bool = False) -> Form:
        return cls(client.takes_document_changes, client.takes_annotations, confirm)


def edit_of(uri: str, text: Text, document: Document | None, edits: Iterable[Edit], form: Form) -> types.WorkspaceEdit:
    """Edits of one file, bound to the document's version where the editor knows versions."""
    made = [(types.TextEdit(text.range_of(edit.start, edit.end), edit.text), None) for edit in edits]
    if not form.documents:
        return types.WorkspaceEdit(changes={uri: [edit for edit, _ in made]})
    return types.WorkspaceEdit(document_changes=[_document_edit(uri, document, made)])


def change_of(change: Change, uri: str, text: Text, document: Document | None, form: Form) -> types.WorkspaceEdit:
    """The module's hunks, each with what it is for where the editor shows that."""
    if not form.annotations:
        return edit_of(uri, text, document, change.edits, form)
    made = [(types.TextEdit(text.range_of(each.start, each.end), each.text), _purpose(each)) for each in change.edits]
    return _annotated([_document_edit(uri, document, made)], form)


def whole_edit(change: Change, uri: str, text: Text, document: Document | None, form: Form) -> types.WorkspaceEdit:
    """The module's hunks with the kernel's file created or deleted: one edit, and so one undo."""
    edit = change_of(change, uri, text, document, form)
    if change.write is None and not change.delete:
        return edit
    steps = list(edit.document_changes or ())
    kernel, purpose = uris.from_path(change.kernel), _KERNEL if form.annotations else None
    if change.write is not None:
        options = types.CreateFileOptions(overwrite=change.kernel.exists())
        create = types.CreateFile(kernel, options=options, annotation_id=purpose)
        steps = [create, _document_edit(kernel, None, [(types.TextEdit(_START, change.write), purpose)]), *steps]
    if change.delete:
        steps.append(types.DeleteFile(kernel, annotation_id=_OUT if form.annotations else None))
    return _annotated(steps, form) if form.annotations else types.WorkspaceEdit(document_changes=steps)


_Step = types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile


def _annotated(steps: list[_Step], form: Form) -> types.WorkspaceEdit:
    known = {
        name: types.ChangeAnnotation(label, needs_confirmation=form.confirm, description=description)
        for name, (label, description) in _ANNOTATIONS.items()
    }
    return types.WorkspaceEdit(document_changes=steps, change_annotations=known)


def _purpose(edit: Edit) -> str:
    if not edit.text.strip():
        return _OUT
    return _GUARD if ".supports(" in edit.text else _IMPORT


def _document_edit(
    uri: str, document: Document | None, edits: Iterable[tuple[types.TextEdit, str | None]]
) -> types.TextDocumentEdit:
    version = document.version if document else None
    made = [
        edit if purpose is None else types.AnnotatedTextEdit(purpose, edit.range, edit.new_text)
        for edit, purpose in edits
    ]
    return types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), made)
