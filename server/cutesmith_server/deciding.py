"""Accepting, rejecting and removing kernels, and adding example inputs: every edit the server asks the editor for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_server import sessions, wording
from cutesmith_server.errors import RefusedError
from cutesmith_server.files import write_atomically
from cutesmith_server.jobs import ClassKey
from cutesmith_server.sessions import Decided, Outcome

if TYPE_CHECKING:
    from cutesmith_server.changes import Change
    from cutesmith_server.studio import Studio

_CREATE, _DELETE = types.ResourceOperationKind.Create, types.ResourceOperationKind.Delete


async def accept(studio: Studio, key: ClassKey) -> None:
    """Puts the kernel on offer into the developer's file. Raises RefusedError or EditRefusedError."""
    outcome = _on_offer(studio, key)
    plan_accepting(studio, key, outcome)  # refuses before it asks
    if outcome.best is not None and outcome.best.ok is None and not await _accepts_unproved(studio, key):
        return
    if _on_offer(studio, key) is not outcome:
        raise RefusedError(f"Another kernel for {key.qualname} was made meanwhile: look at it, then accept again.")
    change = plan_accepting(studio, key, outcome)
    version = _version(studio, key)
    _decide(studio, key, "accepting")  # used once, also while the editor applies it
    try:
        await _apply(studio, change, f"Accept the CuTe kernel for {key.qualname}")
    except (RefusedError, asyncio.CancelledError):
        studio.sessions[key] = sessions.undecided(studio.sessions[key])
        raise
    assert outcome.best is not None
    if studio.sessions[key].outcome is outcome:  # else a job has made another one, which is on offer
        _decide(studio, key, "arriving" if version is not None and version == _version(studio, key) else "accepted")
    await studio.record(key, "accepted", candidate=outcome.best.id, class_hash=outcome.digest, kernel=change.kernel)
    studio.tell(key)


async def accept_file(studio: Studio, key: ClassKey) -> None:
    """Writes the kernel's file and leaves the module as it is; the kernel stays on offer. Raises RefusedError."""
    from dataclasses import replace

    outcome = _on_offer(studio, key)
    change = replace(plan_accepting(studio, key, outcome), edits=())
    if change.write is None:
        raise RefusedError(f"{change.kernel} is this kernel already.")
    with _kernel_written(change):
        studio.client.say(f"{change.kernel} was written; {key.path.name} does not use it yet.")


async def reject(studio: Studio, key: ClassKey) -> None:
    """Clears what the last job found and remembers the decision."""
    _require_no_edit(studio, key)
    if (outcome := _undecided(studio, key)) is None:
        raise RefusedError(f"There is no kernel for {key.qualname} to reject.")
    best = outcome.best
    _decide(studio, key, "rejected")
    await studio.record(key, "rejected", candidate=best.id if best else None, class_hash=outcome.digest)
    studio.tell(key)


async def remove(studio: Studio, key: ClassKey) -> None:
    """Takes an accepted kernel out again. Raises RefusedError or EditRefusedError."""
    from cutesmith_server.changes import removing, user_elsewhere
    from cutesmith_server.records import is_ours

    found = studio.outline(key.path).named(key.qualname)
    looked_for = found.kernel if found and found.kernel else ""
    user = ""
    if looked_for:
        user = await asyncio.to_thread(user_elsewhere, key.path, studio.folder_of(key.path), looked_for)
    ours = is_ours(key.path, key.qualname)
    outline = studio.outline(key.path)  # the user may have typed meanwhile
    change = removing(
        key.path,
        outline,
        key.qualname,
        user_of=lambda kernel: user if kernel == looked_for else "perhaps another file",
        is_ours=ours,
    )
    await _apply(studio, change, f"Remove the CuTe kernel of {key.qualname}")
    _forget_removed(studio, key)
    await studio.record(key, "removed")
    studio.tell(key)
    if change.kept:
        studio.client.say(f"{change.kernel.name} stays: {change.kept}.")


def _forget_removed(studio: Studio, key: ClassKey) -> None:
    """The kernel is out of the class: it is on offer again where it was, and a check's verdict on it is of no use."""
    session = studio.sessions.get(key)
    if session is not None and session.decided in ("arriving", "accepted"):
        _decide(studio, key, "removed")
    elif session is not None and sessions.is_settled(session) and session.outcome and session.outcome.kind == "check":
        del studio.sessions[key]


async def add_inputs(studio: Studio, key: ClassKey) -> None:
    """Adds example inputs at the end of the file. Raises RefusedError or EditRefusedError."""
    from cutesmith_server.inputs_stub import add_inputs as edits_for
    from cutesmith_server.lsp_edits import Form, edit_of

    edits = edits_for(studio.outline(key.path), key.qualname)
    form = Form.of(studio.client)
    edit = edit_of(studio.uri(key.path), studio.text(key.path), studio.documents.at(key.path), edits, form)
    await ask_editor(studio, edit, f"Add example inputs for {key.qualname}")


def _on_offer(studio: Studio, key: ClassKey) -> Outcome:
    _require_no_edit(studio, key)
    session, outcome = studio.sessions.get(key), _undecided(studio, key)
    if session is None or outcome is None or not outcome.is_proposal:
        found = studio.outline(key.path).named(key.qualname)
        raise RefusedError(wording.nothing_to_accept(found, key.qualname, "generate one first"))
    if session.running is not None:
        raise RefusedError(f"A kernel for {key.qualname} is being made: wait for it or cancel it, then accept.")
    if session.is_paused:
        raise RefusedError(f"A job on {key.qualname} is paused: resume it or cancel it, then accept.")
    if session.changed_outside or session.imports_changed:
        raise RefusedError(studio.view(key).message)
    return outcome


def _require_no_edit(studio: Studio, key: ClassKey) -> None:
    """An editor may show an edit first, and take as long as its user does."""
    session = studio.sessions.get(key)
    if session is not None and session.decided == "accepting":
        raise RefusedError(f"Your editor was asked to put the kernel of {key.qualname} in: answer it there first.")


def _decide(studio: Studio, key: ClassKey, choice: Decided) -> None:
    studio.sessions[key] = sessions.decided(studio.sessions[key], choice)


def _version(studio: Studio, key: ClassKey) -> int | None:
    """Of the editor's text; None when it has none."""
    document = studio.documents.at(key.path)
    return document.version if document else None


def _undecided(studio: Studio, key: ClassKey) -> Outcome | None:
    session = studio.sessions.get(key, sessions.Session())
    return sessions.on_offer(session, has_kernel=studio.view(key).has_kernel)


def plan_accepting(studio: Studio, key: ClassKey, outcome: Outcome) -> Change:
    """What accepting a proposal would change. Raises EditRefusedError."""
    from cutesmith_server.changes import accepting
    from cutesmith_server.records import is_ours

    assert outcome.report is not None
    assert outcome.report.kernel is not None
    return accepting(
        key.path,
        studio.outline(key.path),
        key.qualname,
        outcome.report.kernel,
        proved=outcome.digest,
        is_ours=is_ours(key.path, key.qualname),
    )


async def _accepts_unproved(studio: Studio, key: ClassKey) -> bool:
    question = (
        f"The kernel for {key.qualname} was compiled but never run. "
        "Its results are not checked. Accept it all the same?"
    )
    return await studio.client.ask(question, "Accept")


async def _apply(studio: Studio, change: Change, label: str) -> None:
    """One edit where the editor can create and delete files in it; else the kernel's file is ours to write."""
    from cutesmith_server.lsp_edits import Form, change_of, whole_edit

    form = Form.of(studio.client, confirm=studio.settings_of(change.module).confirm_edits)
    uri, text, document = studio.uri(change.module), studio.text(change.module), studio.documents.at(change.module)
    needed = [_CREATE] * (change.write is not None) + [_DELETE] * change.delete
    if all(studio.client.edits_files(kind) for kind in needed):
        await ask_editor(studio, whole_edit(change, uri, text, document, form), label)
        _put_on_disk(change)
        return
    with _kernel_written(change):
        await ask_editor(studio, change_of(change, uri, text, document, form), label)
    if change.delete:
        change.kernel.unlink(missing_ok=True)


def _put_on_disk(change: Change) -> None:
    """An editor may leave the file it created empty until its buffer is saved; the module needs it before that."""
    from cutesmith_agent.subject import candidate_id
    from cutesmith_server.drift import content_id

    if change.write is not None and content_id(change.kernel) != candidate_id(change.write):
        with contextlib.suppress(OSError):
            write_atomically(change.kernel, change.write.encode())


@contextlib.contextmanager
def _kernel_written(change: Change) -> Iterator[None]:
    """The kernel's file in place, and as it was again when the edit fails."""
    if change.write is None:
        yield
        return
    before = change.kernel.read_bytes() if change.kernel.exists() else None
    try:
        write_atomically(change.kernel, change.write.encode())
    except OSError as error:
        raise RefusedError(f"{change.kernel} cannot be written: {error.strerror}.") from None
    try:
        yield
    except RefusedError:
        if before is None:
            change.kernel.unlink(missing_ok=True)
        else:
            write_atomically(change.kernel, before)
        raise


async def ask_editor(studio: Studio, edit: types.WorkspaceEdit, label: str) -> None:
    """Raises RefusedError where the editor does not make the change."""
    if (reason := await studio.client.apply(label, edit)) is not None:
        raise RefusedError(f"The editor did not make the change ({reason}): nothing was changed, try again.")
