"""Showing a kernel: its file, and the patch of the developer's file, opened where the editor can, else named."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from cutesmith_agent.source.edits import EditRefusedError, apply_edits
from cutesmith_server import uris
from cutesmith_server.errors import RefusedError
from cutesmith_server.views import ClassView, errors_of

if TYPE_CHECKING:
    from cutesmith_agent.describe.proposal import Proposal
    from cutesmith_server.jobs import ClassKey
    from cutesmith_server.sessions import Outcome
    from cutesmith_server.studio import Studio

_PREFACE = """\
What accepting changes in your file. Nothing has been changed yet.

The first hunk imports the kernel's module (in a package: relatively); that loads torch and nothing else.
The second hands over to the kernel, at the top of forward, wherever `supports` is true; everywhere else (training,
other devices, dtypes and shapes) the code below it runs as before. "Remove CuTe kernel" takes both out again.

"""

_REFERENCE_PREFACE = """\
What approving changes in your file. Nothing has been changed yet.

A model wrote these statements from your docstring; the checks beside them were written apart from them, from the
docstring alone. Once they are in your class, a kernel is made and proved against them.

"""

_Place = tuple[Path, int | None]  # file, 1-based line


async def review(studio: Studio, view: ClassView) -> None:
    """Opens what there is to read about a class. Raises RefusedError when there is nothing."""
    places = [place for place in _places(studio, view) if place[0].exists()]
    if not places:
        raise RefusedError(view.message or f"There is no kernel for {view.key.qualname} to look at yet.")
    opened = [await studio.client.open(uris.from_path(path), _line(line)) for path, line in places]
    if not all(opened):
        studio.client.say("To read: " + ", ".join(str(path) for path, _ in places))


def proposal(studio: Studio, key: ClassKey) -> dict[str, Any] | None:
    """What accepting would make of the file, for an editor that shows it beside the file as it is; None when it could
    not be accepted as it stands: `review` tells why."""
    from cutesmith_server.deciding import plan_accepting

    view = studio.view(key)
    outcome = view.outcome if view.state in ("ready", "compiled") else None
    if outcome is None or outcome.best is None or outcome.report is None or outcome.report.kernel is None:
        return None
    try:
        change = plan_accepting(studio, key, outcome)
    except EditRefusedError:
        return None
    return {
        "candidate": outcome.best.id,
        "headline": view.message,
        "after": apply_edits(studio.outline(key.path).source.text, change.edits),
        "kernel": {"path": str(change.kernel), "source": outcome.report.kernel.source},
    }


async def report(studio: Studio, key: ClassKey) -> dict[str, Any] | None:
    """The page about a class's kernel, and the file that its lines are of; None where no candidate was tried.
    Raises RefusedError."""
    from cutesmith_server.page.finding import page_of
    from cutesmith_server.records import STORE_ERRORS

    try:
        page = await asyncio.to_thread(page_of, key.path, key.qualname)
    except STORE_ERRORS as error:
        raise RefusedError(f"The store of {studio.folder_of(key.path)} cannot be read: {error}.") from None
    return None if page is None else {"html": page.html, "source": page.source}


async def show_job_log(studio: Studio, key: ClassKey) -> None:
    """Opens what the class's last job said. Raises RefusedError when it has had none since the server began."""
    text = studio.logs.text(key)
    if not text:
        raise RefusedError(f"No job on {key.qualname} has run since the server began: generate a kernel first.")
    path = studio.scratch / f"{key.qualname}.log"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    if not await studio.client.open(uris.from_path(path)):
        studio.client.say(f"To read: {path}")


def _places(studio: Studio, view: ClassView) -> list[_Place]:
    """What to open, the most telling last."""
    if view.outcome is not None and view.outcome.report is not None:
        return _of_outcome(studio, view.outcome)
    if view.found is not None and view.found.kernel is not None:
        return [(view.key.path.with_name(f"{view.found.kernel}.py"), None)]
    return []


def _of_outcome(studio: Studio, outcome: Outcome) -> list[_Place]:
    report = outcome.report
    assert report is not None
    if report.reference is not None:
        return _of_reference(studio, report.reference)
    judged = report.judged
    if judged is None or judged.path is None:
        return []
    error_lines = (found.line for found in errors_of(outcome) if found.file in (None, judged.path) and found.line)
    candidate = (Path(judged.path), next(error_lines, None))
    return [(_patch(studio, judged.id, report.patch), None), candidate] if report.patch else [candidate]


def _of_reference(studio: Studio, reference: Proposal) -> list[_Place]:
    checks = studio.scratch / "checks.py"
    checks.write_text(reference.checks, encoding="utf-8", errors="backslashreplace")
    return [(checks, None), (_patch(studio, "reference", reference.patch, _REFERENCE_PREFACE), None)]


def _patch(studio: Studio, name: str, patch: str, preface: str = _PREFACE) -> Path:
    path = studio.scratch / f"{name}.diff"
    path.write_text(preface + patch, encoding="utf-8", errors="backslashreplace")
    return path


def _line(line: int | None) -> types.Range | None:
    if line is None:
        return None
    return types.Range(types.Position(line - 1, 0), types.Position(line - 1, 0))
