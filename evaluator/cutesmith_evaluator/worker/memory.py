"""How much memory this process may still take."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_MEMINFO, _STATUS = Path("/proc/meminfo"), Path("/proc/self/status")
_GROUP = Path("/sys/fs/cgroup")
_LIMITS = ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData"))


def free_memory() -> int:
    """Bytes: what the machine has free, its control group allows, and the process's own limits leave."""
    return max(0, min(_kilobytes(_MEMINFO, "MemAvailable"), _of_group(), *(_of_limit(*each) for each in _LIMITS)))


def _of_limit(limit: int, used: str) -> int:
    soft, _ = resource.getrlimit(limit)
    return _unlimited() if soft == resource.RLIM_INFINITY else soft - _kilobytes(_STATUS, used)


def _of_group() -> int:
    try:
        return int((_GROUP / "memory.max").read_text()) - int((_GROUP / "memory.current").read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return _unlimited()


def _kilobytes(file: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", file.read_text(), re.MULTILINE) if file.exists() else None
    return int(found[1]) << 10 if found else _unlimited()


def _unlimited() -> int:
    return 1 << 62
