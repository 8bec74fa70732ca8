"""What a worker takes of the machine, held against its limits."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from cutesmith_evaluator.processes import anonymous_bytes, physical_memory
from cutesmith_evaluator.temporary import TemporaryFolder

_DISK_BYTES = 32 << 20  # free space that a worker must leave
_LOOK_AT_DISK_S = 1.0


@dataclass(frozen=True)
class Limits:
    """What a worker may use before it is killed or replaced."""

    memory_bytes: int = field(default_factory=lambda: physical_memory() * 4 // 5)  # the worker with its children
    processes: int = field(default_factory=lambda: 64 + 2 * (os.cpu_count() or 1))  # torch.compile starts one a core
    startup_s: float = 60.0
    request_s: float | None = None  # of a request about a candidate, whatever its deadline
    recycle_after: int = 200  # compiles; the DSL leaks threads


class Usage:
    """Of one worker, whose files are in `scratch`."""

    def __init__(self, limits: Limits, scratch: TemporaryFolder) -> None:
        self._limits = limits
        self._scratch = scratch
        self._looked_at_disk = time.monotonic()
        self._disk_is_full = scratch.free_bytes() < 2 * _DISK_BYTES  # already: it is not the worker's doing

    def excess(self, pids: Sequence[int]) -> str | None:
        """What these processes have too much of, and what to do; None: nothing."""
        limits = self._limits
        if len(pids) > limits.processes:
            return f"it started more than {limits.processes} processes; start none"
        if anonymous_bytes(pids) > limits.memory_bytes:
            return f"it used more than {limits.memory_bytes / 2**30:.1f} GiB of memory; use smaller sizes"
        if self._fills_the_disk():
            return f"it filled the disk of {self._scratch.path.parent.parent}; write less"
        return None

    def _fills_the_disk(self) -> bool:
        """Whether the disk of its scratch folder had space and has none now."""
        if self._disk_is_full or time.monotonic() < self._looked_at_disk + _LOOK_AT_DISK_S:
            return False
        self._looked_at_disk = time.monotonic()
        return self._scratch.free_bytes() < _DISK_BYTES
