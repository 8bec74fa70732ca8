"""Code actions: what the lens offers for the class at the cursor, and two things it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_server import protocol
from cutesmith_server.candidates_nearby import candidates_for, is_candidate, modules_for
from cutesmith_server.diagnostics import LOWERED, NO_INPUTS, OUTDATED
from cutesmith_server.jobs import ClassKey
from cutesmith_server.protocol import DIAGNOSTIC_SOURCE
from cutesmith_server.views import ClassView

if TYPE_CHECKING:
    from cutesmith_server.documents import Document
    from cutesmith_server.studio import Studio

_REWRITE = "refactor.rewrite.cutesmith"


@dataclass(frozen=True)
class _Offer:
    title: str
    kind: str
    command: str
    argument: dict[str, str]
    fixes: list[types.Diagnostic] | None = None


def actions(
    studio: Studio, document: Document, params: types.CodeActionParams
) -> list[types.CodeAction | types.Command]:
    """What can be done at the range, in the kinds the editor asked for."""
    only = params.context.only
    offers = [offer for offer in _offers(studio, document, params) if not only or _is_among(offer.kind, only)]
    return [_as_answer(offer, literal=studio.client.takes_code_actions) for offer in offers]


def _is_among(kind: str, wanted: Sequence[types.CodeActionKind | str]) -> bool:
    names = [each.value if isinstance(each, types.CodeActionKind) else each for each in wanted]
    return any(name in ("", kind) or kind.startswith(f"{name}.") for name in names)


def _offers(studio: Studio, document: Document, params: types.CodeActionParams) -> Iterator[_Offer]:
    outline = studio.outline(document.path)
    found = outline.at(document.text.offset_at(params.range.start))
    if found is not None and found.forward is not None:
        view = studio.view(ClassKey(document.path, found.qualname))
        yield from _for_state(view)
        yield from _checks(studio, view)
        yield from _quick_fixes(view, params.context.diagnostics)
    if is_candidate(document.path, document.text.content):
        yield from _checks_of_this_file(studio, document)


def _for_state(view: ClassView) -> Iterator[_Offer]:
    name = view.key.qualname
    yield from _watching(view)
    if view.state == "running":
        yield _offer(view, f"Pause the CuTe kernel for {name}", "pause", protocol.PAUSE)
        yield _offer(view, f"Cancel the CuTe kernel for {name}", "cancel", protocol.CANCEL)
        return
    if view.state == "paused":
        yield _offer(view, f"Resume the CuTe kernel for {name}", "resume", protocol.RESUME)
        yield _offer(view, f"Cancel the CuTe kernel for {name}", "cancel", protocol.CANCEL)
        return
    if view.state == "reference":
        yield _offer(view, f"Approve the reference for {name} and make a CuTe kernel", "approve", protocol.APPROVE)
        yield _offer(view, f"Review the reference for {name} and its checks", "review", protocol.REVIEW)
        yield _offer(view, f"Reject the reference for {name}", "reject", protocol.REJECT)
        return
    if view.needs_revalidation:
        yield _offer(view, f"Validate the CuTe kernel of {name} again", "revalidate", protocol.REVALIDATE)
    title = "Generate CuTe kernel" if view.state in ("idle", "cancelled", "failed") else "Generate CuTe kernel again"
    yield _offer(view, f"{title} for {name}", "generate", protocol.GENERATE)
    yield _offer(view, f"Ask a language model for a CuTe kernel for {name}", "improve", protocol.IMPROVE)
    if view.outcome is not None and view.outcome.is_proposal:
        yield _offer(view, f"Accept CuTe kernel for {name} ({view.message})", "accept", protocol.ACCEPT)
        yield _offer(view, f"Review CuTe kernel for {name}", "review", protocol.REVIEW)
        yield _offer(view, f"Write only the kernel file for {name}", "acceptFile", protocol.ACCEPT_FILE)
    if view.state in ("ready", "compiled", "stale", "failed"):
        yield _offer(view, f"Reject CuTe kernel for {name}", "reject", protocol.REJECT)
    if view.found is not None and view.found.has_kernel:
        yield _offer(view, f"Remove CuTe kernel from {name}", "remove", protocol.REMOVE)


def _watching(view: ClassView) -> Iterator[_Offer]:
    name = view.key.qualname
    if view.is_marked is False:
        yield _offer(view, f"Watch {name}: validate its CuTe kernel at every save", "watch", protocol.WATCH)
    elif view.is_marked:
        yield _offer(view, f"Stop watching {name}", "unwatch", protocol.UNWATCH)


def _offer(view: ClassView, title: str, kind: str, command: str) -> _Offer:
    return _Offer(title, f"{_REWRITE}.{kind}", command, view.argument())


def _checks(studio: Studio, view: ClassView) -> Iterator[_Offer]:
    if view.state == "running":
        return
    open_files = [(each.path, each.text.content) for each in studio.documents]
    for candidate in candidates_for(view.key.path, view.key.qualname, open_files):
        yield _check(view, candidate, f"Validate {candidate.name} against {view.key.qualname}")


def _checks_of_this_file(studio: Studio, document: Document) -> Iterator[_Offer]:
    open_files = [(each.path, studio.outline(each.path)) for each in studio.documents]
    for path, qualname in modules_for(document.path, open_files):
        view = studio.view(ClassKey(path, qualname))
        yield _check(view, document.path, f"Validate this kernel against its module ({qualname} in {path.name})")


def _check(view: ClassView, candidate: Path, title: str) -> _Offer:
    return _Offer(title, f"{_REWRITE}.check", protocol.CHECK, view.argument(candidate=str(candidate)))


def _quick_fixes(view: ClassView, diagnostics: Sequence[types.Diagnostic]) -> Iterator[_Offer]:
    ours = [each for each in diagnostics if each.source == DIAGNOSTIC_SOURCE and isinstance(each.code, str)]
    lacking = [each for each in ours if each.code == NO_INPUTS]
    if lacking:
        yield _fix(view, "Add get_inputs()", protocol.ADD_INPUTS, lacking)
    if view.state in ("running", "paused") or not ours:
        return
    outdated = [each for each in ours if each.code in OUTDATED]
    if outdated and view.needs_revalidation:
        yield _fix(view, "Validate the kernel again", protocol.REVALIDATE, outdated)
    if outdated:
        yield _fix(view, "Generate the kernel again", protocol.GENERATE, outdated)
    lowered = [each for each in ours if each.code == LOWERED]
    if lowered:
        title = f"Allow lowered precision for {view.key.qualname} (in pyproject.toml)"
        yield _fix(view, title, protocol.ALLOW_LOWERED, lowered)
    failed = [each for each in ours if each.severity == types.DiagnosticSeverity.Warning and each not in lacking]
    outcome = view.outcome
    if failed and outcome is not None and outcome.report is not None and outcome.report.judged is not None:
        yield _fix(view, "Open the candidate that failed", protocol.REVIEW, failed)
        yield _fix(view, "Retry with this feedback, by a language model", protocol.IMPROVE, failed)
    if failed:
        yield _fix(view, "Show the job's log", protocol.SHOW_JOB_LOG, failed)


def _fix(view: ClassView, title: str, command: str, fixes: list[types.Diagnostic]) -> _Offer:
    return _Offer(title, types.CodeActionKind.QuickFix.value, command, view.argument(), fixes)


def _as_answer(offer: _Offer, *, literal: bool) -> types.CodeAction | types.Command:
    command = types.Command(offer.title, offer.command, arguments=[offer.argument])
    if not literal:
        return command
    return types.CodeAction(offer.title, kind=offer.kind, diagnostics=offer.fixes, command=command)
