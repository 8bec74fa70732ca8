"""Code lenses: the state of each module class and what can be done about it, commands included (no resolve)."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from cutesmith_server import protocol, wording
from cutesmith_server.documents import Text
from cutesmith_server.views import ClassView

_SHORT = 80  # characters of a lens's text


def lenses(view: ClassView, text: Text) -> list[types.CodeLens]:
    """The lenses above one class; none for a class without a forward of its own."""
    if view.found is None or view.found.forward is None:
        return []
    line = text.range_of(view.found.name_range.start, view.found.name_range.end)
    return [
        types.CodeLens(line, types.Command(title, command, arguments=[view.argument()]))
        for title, command in (*_entries(view), *_watch(view))
    ]


def _entries(view: ClassView) -> list[tuple[str, str]]:
    decide = [("Review", protocol.REVIEW), ("Accept", protocol.ACCEPT), ("Reject", protocol.REJECT)]
    generate = (f"Generate CuTe kernel{_captured(view)}", protocol.GENERATE)
    match view.state:
        case "idle" | "cancelled":
            return [generate]
        case "running":
            shown = (_short(_progress(view)), protocol.REVIEW)
            return [shown, ("Pause", protocol.PAUSE), ("Cancel", protocol.CANCEL)]
        case "paused":
            return [("CuTe kernel paused: resume", protocol.RESUME), ("Cancel", protocol.CANCEL)]
        case "ready" | "compiled":
            shown = (view.message, protocol.REVIEW)
            is_offer = view.outcome is not None and view.outcome.is_proposal
            return [shown, *(decide if is_offer else [generate])]
        case "failed":
            return [(_short(f"No CuTe kernel: {view.message}"), protocol.REVIEW), ("Try again", protocol.GENERATE)]
        case "accepted":
            moved = " (proved with other versions or another GPU)" if view.background.moved else ""
            note = "CuTe kernel (edited since it was proved)" if view.drift else f"CuTe kernel{moved}"
            again = [("Validate again", protocol.REVALIDATE)] if view.needs_revalidation else []
            return [(note, protocol.REVIEW), *again, ("Remove", protocol.REMOVE)]
        case "reference":
            written = ("Reference written from the docstring: review it", protocol.REVIEW)
            return [written, ("Approve", protocol.APPROVE), ("Reject", protocol.REJECT)]
        case "stale":
            return _stale(view)


def _captured(view: ClassView) -> str:
    found = view.background.capture
    if found is None:
        return ""
    return f" · captured: {len(found.calls)} signature{'s' if len(found.calls) > 1 else ''}"


def _stale(view: ClassView) -> list[tuple[str, str]]:
    rest = [("Generate again", protocol.GENERATE), ("Reject", protocol.REJECT)]
    if view.needs_revalidation:
        return [("CuTe kernel out of date: validate it again", protocol.REVALIDATE), *rest]
    note = "CuTe kernel not right for the class as it is" if view.refuted else "CuTe kernel out of date"
    return [(note, protocol.REVIEW), *rest]


def _watch(view: ClassView) -> list[tuple[str, str]]:
    """Where classes are watched by name: for those that have something to watch."""
    if view.is_marked:
        return [("Watched: stop", protocol.UNWATCH)]
    is_worth_it = view.is_marked is False and view.state in ("ready", "compiled", "accepted", "stale")
    return [("Watch", protocol.WATCH)] if is_worth_it else []


def _progress(view: ClassView) -> str:
    running = view.session.running
    assert running is not None
    shown = f"{running.stage}: {running.message}" if running.message else running.stage
    best = _best_so_far(running.best)
    return f"{_short(shown, _SHORT - len(best) - 3)} · {best}" if best else shown


def _best_so_far(best: dict[str, Any] | None) -> str:
    """The best candidate of a running job in a few words, once one was timed or validated."""
    match best:
        case {"speedup": {"compile": float(ratio)}}:
            return f"best {wording.ratio(ratio)} vs torch.compile"
        case {"speedup": {"eager": float(ratio)}}:
            return f"best {wording.ratio(ratio)} vs eager"
        case {"ok": True}:
            return "one is right"
    return ""


def _short(text: str, most: int = _SHORT) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
