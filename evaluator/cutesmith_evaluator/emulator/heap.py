"""How this process keeps the memory of arrays that come and go."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM, _MMAP = -1, -3  # glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
_KEPT, _FROM_HEAP = 256 << 20, 16 << 20  # bytes


@cache
def keep_freed_memory() -> None:
    """Freed arrays stay the process's, up to 256 MiB: else each new one of 128 KiB, which is what 16 000 threads take
    in float64, is mapped and zeroed page by page, which takes several times as long as computing it."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_TRIM, _KEPT)
        libc.mallopt(_MMAP, _FROM_HEAP)
