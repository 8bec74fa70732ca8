"""What a view of all kernels shows: every known module class with the candidates of its last job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cattrs import BaseValidationError

from cutesmith_evaluator.types import Candidate
from cutesmith_evaluator.wire import converter
from cutesmith_server import wording

if TYPE_CHECKING:
    from cutesmith_server.studio import Studio
    from cutesmith_server.views import ClassView


def modules(studio: Studio) -> dict[str, Any]:
    """The classes of open files in text order, then those of closed files that something became of."""
    opened = [view for document in studio.documents for view in studio.views(document)]
    shown = {view.key for view in opened}
    closed = [view for view in studio.known() if view.key not in shown]
    views = [*opened, *closed]
    return {
        "modules": [_module(studio, view) for view in views],
        "device": _device(views),
        "dollars": studio.spent.dollars,
    }


def _module(studio: Studio, view: ClassView) -> dict[str, Any]:
    found, state = view.found, view.job_state().as_wire()
    del state["best"]
    return state | {
        "line": found.line if found is not None else None,
        "message": view.message or _headline(view),
        "kernelLines": _kernel_lines(studio, view),
        "candidates": list(_candidates(view)),
    }


def _headline(view: ClassView) -> str:
    best = view.verdict.best if view.verdict else None
    return wording.headline(best) if best is not None else ""


def _kernel_lines(studio: Studio, view: ClassView) -> list[int]:
    from cutesmith_agent.source.adoption import kernel_lines

    if not view.has_kernel:
        return []
    return list(kernel_lines(studio.outline(view.key.path).source, view.key.qualname))


def _candidates(view: ClassView) -> Iterator[dict[str, Any]]:
    """Of the job that runs, else of the last one. A draft that was proved with its evidence in its header is left out
    for that one."""
    running, last = view.session.running, view.verdict
    if running is not None:
        known, best = _structured(running.candidates), None
    else:
        known = last.report.candidates if last is not None and last.report is not None else ()
        best = last.report.best if last is not None and last.report is not None else None
    proved = {each.draft for each in known}
    for candidate in known:
        if candidate.id not in proved:
            yield _candidate(candidate, best=best, accepted=view.accepted)


def _structured(told: Iterable[dict[str, Any]]) -> tuple[Candidate, ...]:
    """What of an agent's words is a candidate."""
    found: list[Candidate] = []
    for each in told:
        try:
            found.append(converter().structure(each, Candidate))
        except (BaseValidationError, TypeError, ValueError):
            continue
    return tuple(found)


def _candidate(candidate: Candidate, *, best: str | None, accepted: str | None) -> dict[str, Any]:
    error = next((each for each in candidate.findings if each.severity == "error"), None)
    failed = error.message if error is not None else "not right"
    return {
        "id": candidate.id,
        "origin": candidate.origin,
        "stage": candidate.stage,
        "ok": candidate.ok,
        "precision": candidate.precision,
        "headline": failed if candidate.ok is False else wording.headline(candidate),
        "path": candidate.path,
        "line": error.line if error is not None and error.file in (None, candidate.path) else None,
        "isBest": candidate.id == best,
        "isAccepted": candidate.id == accepted,
    }


def _device(views: Iterable[ClassView]) -> str | None:
    """Where the latest job ran; None before one did."""
    ended = [outcome for view in views if (outcome := view.session.outcome) is not None and outcome.report is not None]
    latest = max(ended, key=lambda outcome: outcome.ended, default=None)
    return latest.report.device if latest is not None and latest.report is not None else None
