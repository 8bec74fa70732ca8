"""Starting jobs: generate a kernel for a class, validate kernels against it, prove again what was proved once."""

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
from cutesmith_server.orders import Order, Priority
from cutesmith_server.sessions import Session

if TYPE_CHECKING:
    from cutesmith_agent.source.outline import ModuleClass
    from cutesmith_server.settings import Settings
    from cutesmith_server.studio import Studio


async def start(studio: Studio, key: ClassKey, order: Order) -> None:
    """Starts the job that was ordered, after the trust question. Raises RefusedError."""
    require_startable(studio, key)
    _require_model_allowed(studio, key, order)
    await _require_trust(studio, key)
    require_startable(studio, key)  # the user may have gone on while asked
    begin(studio, key, order)
    await studio.bars.begin(key, _title(key, order), studio.jobs.runs)


def begin(studio: Studio, key: ClassKey, order: Order) -> None:
    """Starts it at once: the folder is trusted, and nothing is in the way."""
    digest = studio.outline(key.path).digest(key.qualname)
    assert digest is not None
    job = _job(studio, key, order)
    before = studio.sessions.get(key, Session())
    studio.sessions[key] = sessions.started(before, order.kind, digest, queued=studio.jobs.would_queue(job))
    studio.orders[key] = order
    studio.pending.keep(key, order)
    studio.logs.begin(key, f"{order.kind} {key.path}::{key.qualname} (device {job.device})")
    studio.jobs.submit(key, job, order.priority)
    studio.tell(key)


def revalidation(studio: Studio, key: ClassKey) -> Order:
    """The order to prove again what is known of a class that has changed: its kernel on offer, else the accepted one.
    Raises RefusedError."""
    view = studio.view(key)
    stale = sessions.on_offer(view.session, has_kernel=view.has_kernel)
    if view.state == "stale" and stale is not None and stale.report is not None and stale.report.kernel is not None:
        if view.session.changed_outside:
            raise RefusedError(view.message)
        kernel = stale.report.kernel
        folder = studio.scratch / (stale.best.id if stale.best else "kernel")
        folder.mkdir(exist_ok=True)
        path = folder / Path(kernel.path).name
        path.write_bytes(kernel.source.encode("utf-8", "surrogatepass"))
        return Order("revalidate", (str(path),))
    if view.found is not None and view.found.kernel is not None:
        path = key.path.with_name(f"{view.found.kernel}.py")
        if path.is_file():
            return Order("check", (str(path),))
    raise RefusedError(f"There is no kernel of {key.qualname} to validate again: generate one.")


def _title(key: ClassKey, order: Order) -> str:
    names: Sequence[str] = [Path(each).name for each in order.candidates]
    if not names:
        return f"CuTe kernel for {key.qualname}"
    again = " again" if order.kind == "revalidate" else ""
    return f"Validating {names[0] if len(names) == 1 else f'{len(names)} kernels'}{again}"


def require_startable(studio: Studio, key: ClassKey) -> None:
    """Raises RefusedError where no job can be started on the class."""
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


def _require_model_allowed(studio: Studio, key: ClassKey, order: Order) -> None:
    if order.with_model and not studio.settings_of(key.path).ask_model:
        raise RefusedError(
            f"No model was asked for {key.qualname}: cutesmith.askModel is off here. Turn it on, or generate without."
        )


async def _require_trust(studio: Studio, key: ClassKey) -> None:
    folder = studio.folder_of(key.path)
    if not await studio.trust.allows(folder, client_says=studio.configuration.trusted):
        raise RefusedError(
            f"Nothing was run: the folder {folder} is not trusted. Trust it, then generate the kernel again."
        )


def _job(studio: Studio, key: ClassKey, order: Order) -> Job:
    settings = studio.settings_of(key.path)
    interpreter = Path(settings.interpreter).expanduser() if settings.interpreter else Path(sys.executable)
    job = Job(
        kind=order.kind,
        task=Task(str(key.path), key.qualname),
        workspace=str(workspace_root(key.path)),
        interpreter=str(interpreter),
        source=studio.unsaved_text(key.path),
        candidates=order.candidates,
        archs=settings.archs,
        device=settings.device,
        resume=True,
        allow_lowered=order.allow_lowered,
    )
    return replace(job, proposer=_proposer(order, settings), provider=settings.model_provider)


def _proposer(order: Order, settings: Settings) -> str:
    """A job that nobody asked for just now asks no model, nor does any where that is turned off."""
    if not settings.ask_model:
        return "recipes"
    if order.with_model:
        return "llm"
    return "auto" if order.priority is Priority.ASKED else "recipes"
