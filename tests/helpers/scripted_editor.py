"""An editor for end-to-end tests: a real server process over stdio, and the client's half of LSP done as editors do it.

It keeps open documents with versions, applies WorkspaceEdits to them (all or nothing, stale versions refused), answers
questions as scripted, and remembers everything it was told.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lsprotocol import converters, types
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

LONG_S = 240.0  # a job imports torch and the DSL, on a machine that does other things too
_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@dataclass
class OpenDocument:
    path: Path
    version: int
    text: str
    undo: list[str] = field(default_factory=list)


class StaleVersionError(Exception):
    """An edit for another version of a document than the editor has."""


class Editor:
    """One editor session. `answers`: from a word in the question to the button to press (None: dismiss)."""

    def __init__(self, client: LanguageClient, *, answers_questions: bool = True) -> None:
        self.client = client
        self.encoding = "utf-16"
        self.documents: dict[str, OpenDocument] = {}
        self.answers: dict[str, str | None] = {}
        self.questions: list[str] = []
        self.states: list[dict[str, Any]] = []
        self.lens_refreshes = 0
        self.watch_globs: list[Any] = []
        self.refuses_edits = False
        self.while_asked: Callable[[], None] = lambda: None
        self.edits: list[types.ApplyWorkspaceEditParams] = []
        self._register(answers_questions)

    # What the server asks of an editor

    def _register(self, answers_questions: bool) -> None:
        """pygls marks the functions it registers, and a bound method takes no marks."""
        feature = self.client.feature
        if answers_questions:
            feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(lambda params: self._on_question(params))
        feature(types.WORKSPACE_APPLY_EDIT)(lambda params: self.on_apply_edit(params))
        feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda params: self._on_lens_refresh(params))
        feature(types.WORKSPACE_INLAY_HINT_REFRESH)(lambda params: None)
        feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: self._on_register(params))
        feature("cutesmith/jobChanged")(lambda params: self._on_job_changed(params))

    def _on_question(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        self.questions.append(params.message)
        self.while_asked()
        for word, button in self.answers.items():
            if word in params.message:
                return types.MessageActionItem(button) if button else None
        return None

    def on_apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.edits.append(params)
        if self.refuses_edits:
            return types.ApplyWorkspaceEditResult(applied=False, failure_reason="the user said no")
        try:
            self._apply(params.edit)
        except (StaleVersionError, OSError) as error:
            return types.ApplyWorkspaceEditResult(applied=False, failure_reason=str(error))
        return types.ApplyWorkspaceEditResult(applied=True)

    def _on_lens_refresh(self, params: None) -> None:
        self.lens_refreshes += 1

    def _on_register(self, params: types.RegistrationParams) -> None:
        self.watch_globs += [registration.register_options for registration in params.registrations]

    def _on_job_changed(self, params: Any) -> None:
        self.states.append(plain(params))

    # What a user does

    def open(self, path: Path) -> str:
        """Opens a file; returns its URI."""
        uri = path.as_uri()
        text = path.read_bytes().decode()
        self.documents[uri] = OpenDocument(path, 1, text)
        item = types.TextDocumentItem(uri, types.LanguageKind.Python, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def type(self, uri: str, find: str, replace: str) -> None:
        """Replaces the only occurrence of a text, as an incremental change."""
        document = self.documents[uri]
        assert document.text.count(find) == 1, find
        start = document.text.index(find)
        self._edit_document(uri, [(start, start + len(find), replace)])

    def insert(self, uri: str, before: str, text: str) -> None:
        """Types in front of a text."""
        at = self.documents[uri].text.index(before)
        self._edit_document(uri, [(at, at, text)])

    def save(self, uri: str) -> None:
        document = self.documents[uri]
        document.path.write_bytes(document.text.encode())
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        del self.documents[uri]
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def undo(self, uri: str) -> None:
        document = self.documents[uri]
        self._edit_document(uri, [(0, len(document.text), document.undo.pop())])

    def tell_changed_on_disk(self, path: Path) -> None:
        event = types.FileEvent(path.as_uri(), types.FileChangeType.Changed)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    async def run(self, command: str, uri: str, qualname: str, **more: str) -> dict[str, Any] | None:
        """Runs a command of the server; its answer as plain JSON."""
        params = types.ExecuteCommandParams(f"cutesmith.{command}", [{"uri": uri, "class": qualname, **more}])
        return plain(await self.client.workspace_execute_command_async(params))

    async def jobs(self) -> list[dict[str, Any]]:
        return plain(await self.client.protocol.send_request_async("cutesmith/jobs", {}))["jobs"]

    def configure(self, values: dict[str, Any]) -> None:
        """Pushes changed settings."""
        settings = {"cutesmith": values}
        self.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))

    async def lenses(self, uri: str) -> list[str]:
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        found = await self.client.text_document_code_lens_async(params) or ()
        return [lens.command.title for lens in found if lens.command]

    async def actions(self, uri: str, at: str, only: list[str] | None = None) -> list[dict[str, Any]]:
        """The code actions offered where a text stands, as the JSON they came in."""
        document = self.documents[uri]
        position = self.position(document.text, document.text.index(at))
        context = types.CodeActionContext(self.diagnostics(uri), only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), types.Range(position, position), context)
        found = await self.client.text_document_code_action_async(params)
        return [plain(each) for each in found or ()]

    async def hover(self, uri: str, at: str) -> str | None:
        document = self.documents[uri]
        position = self.position(document.text, document.text.index(at))
        found = await self.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), position)
        )
        return found.contents.value if found and isinstance(found.contents, types.MarkupContent) else None

    # Waiting

    async def state(self, *wanted: str, qualname: str | None = None, timeout_s: float = LONG_S) -> dict[str, Any]:
        """The newest state once it is one of `wanted`."""

        def newest() -> dict[str, Any] | None:
            return next((each for each in reversed(self.states) if qualname in (None, each["class"])), None)

        await self.until(lambda: (newest() or {}).get("state") in wanted, timeout_s)
        found = newest()
        assert found is not None
        return found

    async def until(self, condition: Callable[[], Any], timeout_s: float = 30.0) -> Any:
        """The condition's value once it is true."""
        async with asyncio.timeout(timeout_s):
            while not (value := condition()):
                await asyncio.sleep(0.02)
        return value

    def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        return list(self.client.diagnostics.get(uri, ()))

    def said(self) -> list[str]:
        return [message.message for message in self.client.messages]

    def progress(self) -> list[Any]:
        return [report for reports in self.client.progress_reports.values() for report in reports]

    # Positions and edits

    def position(self, text: str, offset: int) -> types.Position:
        lines = re.split(r"\r\n|\r|\n", text[:offset])
        codec, size = _UNITS[self.encoding]
        return types.Position(len(lines) - 1, len(lines[-1].encode(codec)) // size)

    def offset(self, text: str, position: types.Position) -> int:
        starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
        codec, size = _UNITS[self.encoding]
        start = starts[position.line]
        return start + len(text[start:].encode(codec)[: position.character * size].decode(codec))

    def _edit_document(self, uri: str, changes: list[tuple[int, int, str]]) -> None:
        """Applies replacements counted in the old text, last first, and tells the server."""
        document = self.documents[uri]
        document.undo.append(document.text)
        events: list[types.TextDocumentContentChangeEvent] = []
        for start, end, new in sorted(changes, reverse=True):
            place = types.Range(self.position(document.text, start), self.position(document.text, end))
            events.append(types.TextDocumentContentChangePartial(place, new))
            document.text = document.text[:start] + new + document.text[end:]
        document.version += 1
        identifier = types.VersionedTextDocumentIdentifier(version=document.version, uri=uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, events))

    def _apply(self, edit: types.WorkspaceEdit) -> None:
        for step in edit.document_changes or ():
            if isinstance(step, types.TextDocumentEdit):
                self._check_version(step.text_document)
        for uri, edits in (edit.changes or {}).items():
            self._apply_text_edits(uri, edits)
        for step in edit.document_changes or ():
            self._apply_step(step)

    def _check_version(self, identifier: types.OptionalVersionedTextDocumentIdentifier) -> None:
        document = self.documents.get(identifier.uri)
        if document and identifier.version is not None and identifier.version != document.version:
            raise StaleVersionError(f"version {identifier.version} of {identifier.uri} is not the present one")

    def _apply_step(self, step: Any) -> None:
        if isinstance(step, types.TextDocumentEdit):
            self._apply_text_edits(step.text_document.uri, step.edits)
        elif isinstance(step, types.CreateFile):
            path = _path(step.uri)
            if path.exists() and not (step.options and step.options.overwrite):
                raise FileExistsError(f"{path} exists")
            path.write_text("")
        elif isinstance(step, types.DeleteFile):
            _path(step.uri).unlink()
        else:
            raise OSError(f"unexpected {step}")

    def _apply_text_edits(self, uri: str, edits: Any) -> None:
        """In a buffer, as editors do: a file that was not open is opened, and nothing is saved."""
        if uri not in self.documents:
            self.open(_path(uri))
        self._edit_document(uri, list(self._replacements(self.documents[uri].text, edits)))

    def _replacements(self, text: str, edits: Any) -> Iterator[tuple[int, int, str]]:
        for edit in edits:
            yield self.offset(text, edit.range.start), self.offset(text, edit.range.end), edit.new_text


def _read_code_actions_as_json(client: LanguageClient) -> None:
    """lsprotocol reads a CodeAction that has a command as a Command."""
    typed = client.protocol.get_result_type
    untyped = types.TEXT_DOCUMENT_CODE_ACTION
    client.protocol.get_result_type = lambda method: None if method == untyped else typed(method)


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def plain(value: Any) -> Any:
    """What pygls made of a JSON value, as JSON again."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in zip(_names(value), value, strict=True)}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return converters.get_converter().unstructure(value)


def _names(value: Any) -> list[str]:
    # A namedtuple cannot have a field "class"; pygls renames it by its place.
    return ["class" if re.fullmatch(r"_\d+", name) else name for name in value._fields]


def changed(capabilities: types.ClientCapabilities, **paths: Any) -> types.ClientCapabilities:
    """Capabilities with some changed: `workspace__workspaceEdit__documentChanges=None`."""
    converter = converters.get_converter()
    data = converter.unstructure(capabilities)
    for path, value in paths.items():
        *parents, name = path.split("__")
        place = data
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = value
        if value is None:
            del place[name]
    return converter.structure(data, types.ClientCapabilities)


def recorded(name: str) -> types.ClientCapabilities:
    """What an editor said of itself in a recorded `initialize` (Helix: as its source at that date sends it)."""
    data = json.loads((Path(__file__).parent / "capabilities" / f"{name}.json").read_text())
    return converters.get_converter().structure(data, types.ClientCapabilities)


VS_CODE = client_capabilities("visual-studio-code")
NEOVIM = recorded("neovim-0.11.4")
HELIX = recorded("helix-2026-07")
EGLOT = recorded("eglot-1.9")
EMACS = client_capabilities("emacs")  # 29.1
BARE = types.ClientCapabilities()


@asynccontextmanager
async def editor(
    root: Path,
    *,
    capabilities: types.ClientCapabilities = VS_CODE,
    options: dict[str, Any] | None = None,
    process_id: int | None = None,
    answers_questions: bool = True,
    ends: bool = True,
) -> AsyncIterator[Editor]:
    """An editor on the folder `root`, its server started and, at the end, shut down (unless the test `ends` it)."""
    client = make_test_lsp_client()
    _read_code_actions_as_json(client)
    await client.start_io(sys.executable, "-m", "cutesmith_server", "serve", env=dict(os.environ), cwd=str(root))
    used = Editor(client, answers_questions=answers_questions)
    folder = types.WorkspaceFolder(root.as_uri(), root.name)
    result = await client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities,
            process_id=process_id,
            root_uri=root.as_uri(),
            workspace_folders=[folder],
            initialization_options=options,
        )
    )
    encoding = result.capabilities.position_encoding
    used.encoding = json.loads(json.dumps(getattr(encoding, "value", encoding) or "utf-16"))
    try:
        yield used
    finally:
        if ends:
            await client.shutdown_session()
        await client.stop()
