"""Starting jobs: generate a kernel for a class, or validate a kernel that somebody wrote against it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cutesmith_agent.job import Job
from cutesmith_agent.store.location import workspace_root
from cutesmith_evaluator.types import Task
from cutesmith_server import sessions
from cutesmith_server.errors import RefusedError
from cutesmith_server.jobs import ClassKey
from cutesmith_server.sessions import Kind, Session

if TYPE_CHECKING:
    from cutesmith_agent.source.outline import ModuleClass
    from cutesmith_server.studio import Studio


async def start(studio: Studio, key: ClassKey, candidate: Path | None = None, *, with_model: bool = False) -> None:
    """Starts a job: `optimize` (`with_model`: a language model goes on from what the recipes found), or `check` of the
    candidate. Raises RefusedError."""
    kind: Kind = "optimize" if candidate is None else "check"
    _require_startable(studio, key)
    await _require_trust(studio, key)
    _require_startable(studio, key)  # the user may have gone on while asked
    digest = studio.outline(key.path).digest(key.qualname)
    assert digest is not None
    job = replace(_job(studio, key, kind, candidate), proposer="llm" if with_model else "auto")
    before = studio.sessions.get(key, Session())
    studio.sessions[key] = sessions.started(before, kind, digest, queued=studio.jobs.would_queue())
    studio.logs.begin(key, f"{kind} {key.path}::{key.qualname} (device {job.device})")
    studio.jobs.submit(key, job)
    studio.refresh(key.path)
    title = f"CuTe kernel for {key.qualname}" if candidate is None else f"Validating {candidate.name}"
    await studio.bars.begin(key, title, studio.jobs.runs)


def _require_startable(studio: Studio, key: ClassKey) -> None:
    if studio.jobs.runs(key):
        raise RefusedError(f"A kernel for {key.qualname} is being made already: wait for it or cancel it.")
    found = studio.outline(key.path).named(key.qualname)
    if found is None:
        raise RefusedError(f"There is no module class {key.qualname} in {key.path.name}: it may have been renamed.")
    if found.is_duplicate:
        raise RefusedError(_duplicates(studio, key))
    _require_forward(found, key)


def _duplicates(studio: Studio, key: ClassKey) -> str:
    classes = studio.outline(key.path).classes
    lines = " and ".join(str(found.line) for found in classes if found.qualname == key.qualname)
    return f"{key.path.name} defines {key.qualname} more than once (lines {lines}): rename or remove all but one."


def _require_forward(found: ModuleClass, key: ClassKey) -> None:
    if found.forward is None:
        raise RefusedError(
            f"{key.qualname} has no forward of its own in {key.path.name}: choose the class that defines it."
        )


async def _require_trust(studio: Studio, key: ClassKey) -> None:
    folder = studio.folder_of(key.path)
    if not await studio.trust.allows(folder, client_says=studio.settings.trusted):
        raise RefusedError(
            f"Nothing was run: the folder {folder} is not trusted. Trust it, then generate the kernel again."
        )


def _job(studio: Studio, key: ClassKey, kind: Kind, candidate: Path | None) -> Job:
    settings = studio.settings
    interpreter = Path(settings.interpreter).expanduser() if settings.interpreter else Path(sys.executable)
    return Job(
        kind=kind,
        task=Task(str(key.path), key.qualname),
        workspace=str(workspace_root(key.path)),
        interpreter=str(interpreter),
        source=studio.unsaved_text(key.path),
        candidate=str(candidate) if candidate else None,
        archs=settings.archs,
        device=settings.device,
        resume=True,
    )
