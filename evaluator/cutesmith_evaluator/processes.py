"""What /proc says of processes: descendants, environments, memory in use, time spent waiting."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def descendants(pid: int) -> list[int]:
    """Children, their children and so on; empty where /proc does not say."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def kill_tree(pid: int) -> None:
    """Kills a process and all below it; each is stopped before it is asked for its children, so none is born unseen."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGSTOP)
    for child in _children(pid):
        kill_tree(child)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def with_variable(variable: str) -> list[int]:
    """Processes that were started with "NAME=value" in their environment."""
    wanted = b"\0" + os.fsencode(variable) + b"\0"
    return [int(folder.name) for folder in _PROC.glob("[0-9]*") if wanted in b"\0" + _read_bytes(folder / "environ")]


def anonymous_bytes(pids: Iterable[int]) -> int:
    """Resident memory that belongs to these processes alone (mapped files and shared memory left out)."""
    return sum(_anonymous_pages(pid) for pid in pids) * os.sysconf("SC_PAGE_SIZE")


def has_ended(pid: int) -> bool:
    """Whether the process's main thread is gone; it cannot be reaped before its other threads are, too."""
    state = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return bool(state) and state[0] in "ZX"


def waited_s(pid: int) -> float:
    """Seconds for which the process's main thread was ready to run and others had the processors; 0.0 unknown."""
    fields = _read(_PROC / str(pid) / "schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def physical_memory() -> int:
    """Bytes this machine, or the container we run in, has."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read(_CGROUP_LIMIT).strip()
    return min(total, int(limit)) if limit.isdigit() else total


def _children(pid: int) -> list[int]:
    tasks = _PROC / str(pid) / "task"
    try:
        threads = list(tasks.iterdir())
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(thread / "children").split()]


def _anonymous_pages(pid: int) -> int:
    fields = _read(_PROC / str(pid) / "statm").split()
    return int(fields[1]) - int(fields[2]) if fields else 0


def _read(path: Path) -> str:
    return _read_bytes(path).decode(errors="replace")


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
