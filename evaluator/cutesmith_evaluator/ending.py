"""Ends a process with all that it has started, however that hides.

A worker is the subreaper of what code in it detaches, so while it lives, if only stopped, everything is below it. What
a dead one leaves is known by its environment. In a sandbox with processes of its own the kernel ends all of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress

from cutesmith_evaluator.processes import descendants, with_variable

_ROUNDS = 50  # each stops what was started since the one before: what is stopped starts nothing
_WAIT_S = 5.0
_SIGNALLED = 128  # the sandbox's exit code for a signal is this much more


def end_group(process: subprocess.Popen[bytes], variable: str) -> None:
    """Ends the leader of a process group, the group, every process below it, and all with this variable
    ("NAME=value") in their environment."""
    _signal_group(process.pid, signal.SIGSTOP)
    below = _stopped(process.pid)
    _signal_group(process.pid, signal.SIGKILL)
    _signal(below, signal.SIGKILL)
    _signal(with_variable(variable), signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # stuck in the driver: init reaps it
        process.wait(_WAIT_S)


def _stopped(leader: int) -> set[int]:
    """The processes below, once all are stopped."""
    known: set[int] = set()
    for _ in range(_ROUNDS):
        new = set(descendants(leader)) - known
        if not new:
            break
        _signal(new, signal.SIGSTOP)
        known |= new
    return known


def _signal_group(leader: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def how_it_ended(code: int | None, *, sandboxed: bool) -> str:
    """In words: "ended (SIGSEGV)". `code`: None where it goes on without its channel."""
    if code is None:
        return "closed its channel to CuteSmith"
    if sandboxed and code > _SIGNALLED:
        code = _SIGNALLED - code
    if code >= 0:
        return f"ended (exit code {code})"
    if -code == signal.SIGKILL:
        return "ended (SIGKILL: by itself, or by the system where memory ran out)"
    return f"ended ({signal.Signals(-code).name})"
