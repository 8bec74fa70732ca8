"""The server ends when its client does, and leaves no process behind."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutesmith_server.studio import Studio

log = logging.getLogger(__name__)

_POLL_S = 5.0


def end_with_client(studio: Studio, client_pid: int | None) -> None:
    """Watches for SIGTERM and, besides the end of stdin, for the death of the client's process."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, _leave, studio, "SIGTERM")
    if client_pid is not None:
        _watch_process(studio, loop, client_pid)


def _watch_process(studio: Studio, loop: asyncio.AbstractEventLoop, pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        log.info("no process %d here (another container?): watching stdin alone", pid)
    except (AttributeError, OSError):
        _poll(studio, loop, pid)
    else:
        loop.add_reader(descriptor, _leave, studio, f"the end of client {pid}")


def _poll(studio: Studio, loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Where the system has no process descriptors."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        _leave(studio, f"the end of client {pid}")
    except PermissionError:
        return
    else:
        loop.call_later(_POLL_S, _poll, studio, loop, pid)


def _leave(studio: Studio, why: str) -> None:
    log.info("leaving after %s", why)
    studio.leaving = asyncio.ensure_future(_close_and_exit(studio))


async def _close_and_exit(studio: Studio) -> None:
    try:
        await studio.close()
    finally:
        # Not sys.exit: a thread may sit in a read of stdin that nothing will ever end.
        os._exit(1)
