"""Whose turn it is on the CUDA device, among the CuteSmith processes of this user: many validate, one measures alone.

A process that dies gives its turn back. Other programs know nothing of it; a worker looks at what they do by itself.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cutesmith_evaluator.types import Finding

WAIT_S = 120.0
_LOOK_S = 0.2
_TELL_S = 5.0


@contextmanager
def turn(*, alone: bool, on_progress: Callable[[str], None] | None = None, wait_s: float = WAIT_S) -> Iterator[bool]:
    """Inside it is this process's turn, and nobody else's where it is to be `alone`. False: after `wait_s` it still was
    another's. Where the lock file cannot be used nobody waits."""
    try:
        descriptor = os.open(_lock_file(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield True
        return
    try:
        yield _acquired(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, on_progress, wait_s)
    finally:
        os.close(descriptor)


def busy_finding(wait_s: float = WAIT_S) -> Finding:
    """What a verdict carries that was reached all the same."""
    message = (
        f"The device was busy with another CuteSmith job for {wait_s:.0f} s, and was used beside it: check again when "
        "that job has ended, for times may be off."
    )
    return Finding("device-busy", message, severity="warning")


def _lock_file() -> Path:
    """One for each device, as the environment names it."""
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    return Path(tempfile.gettempdir()) / f"cutesmith-device-{os.getuid()}-{re.sub(r'[^A-Za-z0-9-]', '_', device)}.lock"


def _acquired(descriptor: int, how: int, on_progress: Callable[[str], None] | None, wait_s: float) -> bool:
    started, told = time.monotonic(), -_TELL_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            return True
        passed = time.monotonic() - started
        if passed > wait_s:
            return False
        if passed > told + _TELL_S and on_progress:
            told = passed
            bound = f"{passed:.0f} s of up to {wait_s:.0f} s"
            on_progress(f"waiting for the device, which another CuteSmith job uses ({bound})")
        time.sleep(min(_LOOK_S, wait_s))
