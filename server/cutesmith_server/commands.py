"""The commands of `workspace/executeCommand`. Each answers the class's state after it, or null when it refused."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutesmith_server import protocol, uris
from cutesmith_server.errors import RefusedError
from cutesmith_server.jobs import ClassKey
from cutesmith_server.orders import Order

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from cutesmith_server.studio import Studio

log = logging.getLogger(__name__)

Run = Callable[["Studio", ClassKey, dict[str, Any]], Awaitable[None]]


def register(server: LanguageServer, studio: Studio) -> None:
    runs: dict[str, Run] = {
        protocol.GENERATE: _generate,
        protocol.IMPROVE: _improve,
        protocol.CANCEL: _cancel,
        protocol.ACCEPT: _accept,
        protocol.ACCEPT_FILE: _accept_file,
        protocol.REJECT: _reject,
        protocol.REMOVE: _remove,
        protocol.CHECK: _check,
        protocol.REVIEW: _review,
        protocol.ADD_INPUTS: _add_inputs,
        protocol.SHOW_JOB_LOG: _show_job_log,
        protocol.APPROVE: _approve,
        protocol.PAUSE: _pause,
        protocol.RESUME: _resume,
        protocol.REVALIDATE: _revalidate,
        protocol.ALLOW_LOWERED: _allow_lowered,
        protocol.WATCH: _watch,
        protocol.UNWATCH: _unwatch,
    }
    for name, run in runs.items():
        server.command(name)(_handler(studio, name, run))


def _handler(studio: Studio, name: str, run: Run) -> Callable[..., Awaitable[dict[str, Any] | None]]:
    async def handle(*arguments: Any) -> dict[str, Any] | None:
        from cutesmith_agent.source.edits import EditRefusedError

        try:
            argument = _only_argument(arguments)
            key = class_named_in(argument)
            await run(studio, key, argument)
        except (RefusedError, EditRefusedError) as refusal:
            studio.client.refuse(str(refusal))
            return None
        except Exception as error:
            log.exception("%s failed", name)
            studio.client.refuse(_told(name, error))
            return None
        return studio.view(key).job_state().as_wire()

    return handle


def _told(command: str, error: Exception) -> str:
    """What failed, for the user. A disk that is full or a store that is locked is no fault of ours."""
    if isinstance(error, OSError) or type(error).__module__ == "sqlite3":
        return f"{command} could not be done ({error}): nothing more was changed, try again when that is mended."
    return f"{command} failed in CuteSmith itself: see its log, and please report it."


def _only_argument(arguments: tuple[Any, ...]) -> dict[str, Any]:
    match arguments:
        case (dict() as argument,):
            return argument
    raise RefusedError('A CuteSmith command takes one argument {"uri": …, "class": …}.')


def class_named_in(argument: Any) -> ClassKey:
    """Raises RefusedError where an argument names no class of a file on disk."""
    match argument:
        case {"uri": str(uri), "class": str(qualname)}:
            path = uris.to_path(uri)
            if path is None:
                raise RefusedError(f"{uri} is no file on disk: save it first.")
            return ClassKey(path, qualname)
    raise RefusedError('A CuteSmith command names a class: {"uri": …, "class": …}.')


async def _generate(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.generating import start

    await start(studio, key, Order())


async def _improve(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.generating import start

    await start(studio, key, Order(with_model=True))


async def _check(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.generating import start

    await start(studio, key, Order("check", tuple(map(str, _candidates(argument, key)))))


def _candidates(argument: dict[str, Any], key: ClassKey) -> list[Path]:
    """The kernels that a check names: one, or a list."""
    named = argument.get("candidate")
    listed = named if isinstance(named, list) else [named]
    paths = [Path(each) for each in listed if isinstance(each, str) and each]
    if not paths or len(paths) < len(listed):
        raise RefusedError(f"Name the kernel file to validate against {key.qualname} (a path, as `candidate`).")
    for path in paths:
        if not path.is_file():
            raise RefusedError(f"The kernel file {path} does not exist: save it first.")
    return paths


async def _cancel(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.pausing import drop

    if not studio.jobs.cancel(key) and not drop(studio, key):
        raise RefusedError(f"No kernel is being made for {key.qualname}.")


async def _pause(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    if not studio.jobs.pause(key):
        raise RefusedError(f"No kernel is being made for {key.qualname}: there is nothing to pause.")


async def _resume(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.pausing import resume

    await resume(studio, key)


async def _revalidate(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.generating import revalidation, start

    await start(studio, key, revalidation(studio, key))


async def _allow_lowered(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.allowing import allow_lowered

    await allow_lowered(studio, key)


async def _watch(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    if studio.outline(key.path).named(key.qualname) is None:
        raise RefusedError(f"There is no module class {key.qualname} in {key.path.name} to watch.")
    studio.watch.mark(key, on=True)
    if studio.settings_of(key.path).watch == "off":
        studio.client.say(f'{key.qualname} is marked; it is watched once cutesmith.watch is "marked" or "all".')
    studio.tell_lenses()


async def _unwatch(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    studio.watch.mark(key, on=False)
    studio.tell_lenses()


async def _accept(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.deciding import accept

    await accept(studio, key)


async def _accept_file(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.deciding import accept_file

    await accept_file(studio, key)


async def _reject(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.deciding import reject

    await reject(studio, key)


async def _remove(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.deciding import remove

    await remove(studio, key)


async def _review(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.reviewing import review

    await review(studio, studio.view(key))


async def _show_job_log(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.reviewing import show_job_log

    await show_job_log(studio, key)


async def _add_inputs(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.deciding import add_inputs

    await add_inputs(studio, key)


async def _approve(studio: Studio, key: ClassKey, argument: dict[str, Any]) -> None:
    from cutesmith_server.approving import approve

    await approve(studio, key)
