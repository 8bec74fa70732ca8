"""What judged code may change of its whole process, and the next request must not find: it is put back."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import dataclass
from typing import Any

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
_FIXED = (signal.SIGKILL, signal.SIGSTOP)


@dataclass(frozen=True)
class ProcessState:
    """`handlers`: Python's own; what C code has installed is left alone."""

    folder: str
    mask: int
    limits: dict[int, tuple[int, int]]
    handlers: dict[int, Any]

    def restore(self) -> bool:
        """In the main thread. Whether all is as it was; what cannot be put back ends the process's use."""
        try:
            for limit, values in self.limits.items():
                if resource.getrlimit(limit) != values:
                    resource.setrlimit(limit, values)
            os.umask(self.mask)
            os.chdir(self.folder)
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self.handlers.items():
                if signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
        except (OSError, ValueError):
            return False
        return True


def process_state() -> ProcessState:
    """As it is now."""
    mask = os.umask(0o077)
    os.umask(mask)
    handlers = {int(each): signal.getsignal(each) for each in signal.valid_signals() if each not in _FIXED}
    known = {number: handler for number, handler in handlers.items() if handler is not None}
    return ProcessState(os.getcwd(), mask, {limit: resource.getrlimit(limit) for limit in _LIMITS}, known)  # noqa: PTH109
