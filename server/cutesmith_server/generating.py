"""Starting jobs: generate a kernel for a class, or validate a kernel that somebody wrote against it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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


async def start(studio: Studio, key: ClassKey, candidates: Sequence[Path] = (), *, with_model: bool = False) -> None:
    """Starts a job: `optimize` (`with_model`: a language model goes on from what the recipes found), or `check` of the
    candidates. Raises RefusedError."""
    kind: Kind = "check" if candidates else "optimize"
    _require_startable(studio, key)
    await _require_trust(studio, key)
    _require_startable(studio, key)  # the user may have gone on while asked
    digest = studio.outline(key.path).digest(key.qualname)
    assert digest is not None
    job = replace(_job(studio, key, kind, candidates), proposer="llm" if with_model else "auto")
    before = studio.sessions.get(key, Session())
    studio.sessions[key] = sessions.started(before, kind, digest, queued=studio.jobs.would_queue())
    studio.logs.begin(key, f"{kind} {key.path}::{key.qualname} (device {job.device})")
    studio.jobs.submit(key, job)
    studio.refresh(key.path)
    await studio.bars.begin(key, _title(key, candidates), studio.jobs.runs)


def _title(key: ClassKey, candidates: Sequence[Path]) -> str:
    if not candidates:
        return f"CuTe kernel for {key.qualname}"
    return f"Validating {candidates[0].name if len(candidates) == 1 else f'{len(candidates)} kernels'}"


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


def _job(studio: Studio, key: ClassKey, kind: Kind, candidates: Sequence[Path]) -> Job:
    settings = studio.settings
    interpreter = Path(settings.interpreter).expanduser() if settings.interpreter else Path(sys.executable)
    return Job(
        kind=kind,
        task=Task(str(key.path), key.qualname),
        workspace=str(workspace_root(key.path)),
        interpreter=str(interpreter),
        source=studio.unsaved_text(key.path),
        candidates=tuple(map(str, candidates)),
        archs=settings.archs,
        device=settings.device,
        resume=True,
    )
