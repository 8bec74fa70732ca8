"""The server's heart: open files, what became of their classes, running jobs, and telling the editor of changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutesmith_server import sessions, uris
from cutesmith_server.background import NOTHING, Background
from cutesmith_server.client import Client
from cutesmith_server.configuration import Configuration
from cutesmith_server.documents import Document, Documents, Text
from cutesmith_server.drift import drift_of
from cutesmith_server.editor_models import EditorModels
from cutesmith_server.errors import RefusedError
from cutesmith_server.job_events import JobEvents
from cutesmith_server.job_logs import JobLogs
from cutesmith_server.jobs import ClassKey, Supervisor
from cutesmith_server.module_watch import ModuleWatch
from cutesmith_server.orders import Order
from cutesmith_server.outlines import Outline, Outlines, outline_of_file
from cutesmith_server.pending import PendingJobs
from cutesmith_server.progress import ProgressBars
from cutesmith_server.refreshing import Refreshing
from cutesmith_server.restoring import Restoring
from cutesmith_server.sessions import Session
from cutesmith_server.settings import Settings, Watch
from cutesmith_server.spent import Spent
from cutesmith_server.telling import Telling
from cutesmith_server.trust import TrustGate
from cutesmith_server.views import ClassView

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from cutesmith_agent.source.outline import ModuleClass
    from cutesmith_agent.store.rows import Choice, Decision
    from cutesmith_server.folder_watcher import FolderWatcher

log = logging.getLogger(__name__)


class Studio:
    """One per server. Its methods run on the event loop and are short."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self.client = Client(server)
        self.documents = Documents()
        self.configuration = Configuration(self.client.refuse)
        self.jobs = Supervisor(JobEvents(self), editor=EditorModels(self.client).answer)
        self.bars = ProgressBars(server, self.client)
        self.spent = Spent()
        self.logs = JobLogs()
        self.trust = TrustGate(self._ask_for_trust)
        self.sessions: dict[ClassKey, Session] = {}
        self.orders: dict[ClassKey, Order] = {}  # what the class's last job was to do
        self.pending = PendingJobs()
        self.watch = ModuleWatch(self)
        self.accepted: dict[ClassKey, Decision] = {}
        self.background: dict[ClassKey, Background] = {}
        self.at_the_store = asyncio.Lock()
        self.decisions = 0  # of this server's user, by now
        self._telling = Telling(server, self.client)
        self._outlines = Outlines()
        self.is_closed = False
        self.leaving: asyncio.Future[None] | None = None
        self._watcher: FolderWatcher | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._restoring = Restoring(self)
        self._refreshing = Refreshing(self._refresh)

    # Reading

    def outline(self, path: Path) -> Outline:
        """The file's outline: of the editor's text where it is open. Raises RefusedError."""
        document = self.documents.at(path)
        if document is not None:
            return self._outlines.of(document)
        try:
            return outline_of_file(path)
        except FileNotFoundError:
            raise RefusedError(f"{path} does not exist any more: save or restore it first.") from None
        except (OSError, UnicodeDecodeError, SyntaxError) as error:
            raise RefusedError(f"{path} cannot be read: {error}.") from None

    def text(self, path: Path) -> Text:
        document = self.documents.at(path)
        return document.text if document else Text(self.outline(path).source.text, self.documents.encoding)

    def unsaved_text(self, path: Path) -> str | None:
        """The editor's text where it is not the file's."""
        document = self.documents.at(path)
        if document is None or _disk_text(path) == document.text.content:
            return None
        return document.text.content

    def uri(self, path: Path) -> str:
        """The file's URI, spelled as the editor spells it."""
        document = self.documents.at(path)
        return document.uri if document else uris.from_path(path)

    def view(self, key: ClassKey) -> ClassView:
        (found,) = self._views_of(key.path, [key])
        return found

    def _views_of(self, path: Path, keys: list[ClassKey]) -> list[ClassView]:
        """Those of classes of one file, which is read once."""
        outline = None
        with contextlib.suppress(RefusedError):
            outline = self.outline(path)
        watch = self.settings_of(path).watch
        return [self._view(key, outline, outline.named(key.qualname) if outline else None, watch) for key in keys]

    def _view(self, key: ClassKey, outline: Outline | None, found: ModuleClass | None, watch: Watch) -> ClassView:
        session = self.sessions.get(key, Session())
        accepted = self.accepted.get(key) if found is not None and found.has_kernel else None
        asked_for = session.outcome is not None or accepted is not None
        digest = outline.digest(key.qualname) if outline is not None and asked_for else None
        known = self.background.get(key, NOTHING)
        drift = ""
        if found is not None and found.has_kernel:
            drift = drift_of(key, found, accepted, digest) or (known.imports_changed if accepted else "")
        accepted_id = accepted.candidate if accepted else None
        marked = self.watch.is_marked(key) if watch == "marked" else None
        return ClassView(self.uri(key.path), key, found, session, digest, drift, accepted_id, marked, known)

    def views(self, document: Document) -> list[ClassView]:
        """Every module class of an open file, in text order."""
        outline, watch = self._outlines.of(document), self.settings_of(document.path).watch
        return [self._view(ClassKey(document.path, each.qualname), outline, each, watch) for each in outline.classes]

    def known(self) -> list[ClassView]:
        """Every class that something became of."""
        files: dict[Path, list[ClassKey]] = {}
        for key in self.sessions:
            files.setdefault(key.path, []).append(key)
        return [view for path, keys in files.items() for view in self._views_of(path, keys)]

    def folder_of(self, path: Path) -> Path:
        """The workspace folder of a file: the innermost that holds it, else the file's own folder."""
        folders = [uris.to_path(folder.uri) for folder in self._server.workspace.folders.values()]
        root = self._server.workspace.root_uri
        candidates = [*folders, uris.to_path(root) if root else None]
        around = [folder for folder in candidates if folder is not None and path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=path.parent)

    def settings_of(self, path: Path) -> Settings:
        """The settings that hold for a file."""
        return self.configuration.of(path)

    def is_trusted(self, path: Path) -> bool:
        """Whether the file's code may run, as far as is known without a question."""
        return self.trust.is_given(self.folder_of(path), client_says=self.configuration.trusted)

    # Changing

    def opened(self, document: Document) -> None:
        if self._watcher is not None:
            self._watcher.add(document.path.parent)
        self.settings_of(document.path)  # says what of them is wrong
        self.refresh(document.path)
        self._restoring.begin(document)

    async def record(self, key: ClassKey, choice: Choice, **about: Any) -> None:
        """Remembers a decision, in the store too; the edit it is about has been made. One after the other, and nobody
        else waits: a store may be locked for seconds."""
        from cutesmith_server.records import STORE_ERRORS, record

        self.accepted.pop(key, None)
        self.background[key] = replace(
            self.background.get(key, NOTHING), moved="", imports_changed=""
        )  # decided on what is known now
        self.decisions += 1
        async with self.at_the_store:
            try:
                decision = await asyncio.to_thread(record, choice, key.path, key.qualname, **about)
            except STORE_ERRORS as error:
                self.client.refuse(f"Done, but it could not be written to the store of {key.path.parent} ({error}).")
                return
            if choice == "accepted":
                self.accepted[key] = decision
        if choice == "accepted":
            self.look_up(key.path)

    def look_up(self, path: Path) -> None:
        """Reads what the store has of an open file's classes: decisions, and which files a proof hangs on."""
        if (document := self.documents.at(path)) is not None and not self.is_closed:
            self._restoring.begin(document)

    def learn(self, key: ClassKey, background: Background) -> None:
        """Takes note of what is known of a class beside its jobs."""
        if self.background.get(key, NOTHING) != background:
            self.background[key] = background
            self._telling.refresh_lenses_soon()

    def saved(self, document: Document) -> None:
        self.refresh(document.path)
        self._restoring.begin(document)  # a run may have been captured
        self._refresh_users(document.path)
        self.watch.saved(document)

    def edited(self, document: Document) -> None:
        """Looks at the file once the typing pauses."""
        for key in [key for key in self.sessions if key.path == document.path]:
            self.sessions[key] = sessions.seen_changed(self.sessions[key])
        self._refreshing.typed(document.path)

    def closed(self, document: Document) -> None:
        self._refreshing.forget(document.path)
        self._outlines.forget(document)
        self._telling.diagnostics(document.uri, [])
        if self.documents.at(document.path) is not None:  # open under another name, too
            self.refresh(document.path)

    def watch_folders_with(self, watcher: FolderWatcher) -> None:
        self._watcher = watcher
        for document in self.documents:
            watcher.add(document.path.parent)

    async def close(self) -> None:
        """Ends every job and all else that would outlive the server."""
        self.is_closed = True
        await self.jobs.close()
        self._refreshing.close()
        if self._watcher is not None:
            self._watcher.stop()
        if self._scratch is not None:
            self._scratch.cleanup()

    @property
    def scratch(self) -> Path:
        """A folder that lasts as long as the server."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="cutesmith-")
        return Path(self._scratch.name)

    def update(self, key: ClassKey, session: Session) -> None:
        """Takes note of what became of a class, and tells the editor."""
        self.sessions[key] = session
        self.tell(key)

    def tell(self, key: ClassKey) -> None:
        """Tells the editor of one class's state, and brings it up to date on its file."""
        self._telling.states([self.view(key)])
        self.refresh(key.path)

    def tell_lenses(self) -> None:
        self._telling.refresh_lenses_soon()

    def changed_on_disk(self, path: Path) -> None:
        """The file is another than it was, and the editor may not know."""
        document = self.documents.at(path)
        differs = document is not None and _disk_text(path) not in (None, document.text.content)
        for key in [key for key in self.sessions if key.path == path]:
            self.sessions[key] = sessions.seen_on_disk(self.sessions[key], differs=differs)
        self.refresh(path)
        self.look_up(path)  # the command line may have accepted or removed a kernel
        self._refresh_users(path)

    def _refresh_users(self, kernel: Path) -> None:
        """A kernel's file has changed, or one that others import: what is said of the classes that hand over to it, or
        were proved with it, may hold no more."""
        users = {key.path for key, known in self.background.items() if str(kernel) in known.imported}
        for path in users:
            self.look_up(path)
        for document in self.documents:
            if document.path.parent == kernel.parent and self._outlines.of(document).uses(kernel.stem):
                self.refresh(document.path)
                self.tell_lenses()

    def refresh(self, path: Path) -> None:
        """Brings the editor up to date on a file: states, lenses, diagnostics."""
        self._refreshing.now(path)

    def _refresh(self, path: Path) -> None:
        document = self.documents.at(path)
        if document is not None:
            self._clear_outside_change(document)
        self._telling.states(self._views_of(path, [key for key in self.sessions if key.path == path]))
        if document is not None:
            self.publish(document)

    def publish(self, document: Document) -> None:
        from cutesmith_server.publishing import diagnostics_of

        self._telling.diagnostics(document.uri, diagnostics_of(self, document))

    def _clear_outside_change(self, document: Document) -> None:
        flagged = [
            key for key, session in self.sessions.items() if key.path == document.path and session.changed_outside
        ]
        if flagged and _disk_text(document.path) == document.text.content:
            for key in flagged:
                self.sessions[key] = sessions.seen_on_disk(self.sessions[key], differs=False)

    async def _ask_for_trust(self, folder: Path) -> bool:
        question = f"Generating a kernel runs the code of {folder} on this machine. Trust this folder?"
        return await self.client.ask(question, "Trust", "Don't trust")


def _disk_text(path: Path) -> str | None:
    from cutesmith_agent.source.parsing import decode

    try:
        return decode(path.read_bytes())
    except (OSError, UnicodeDecodeError, SyntaxError):
        return None
