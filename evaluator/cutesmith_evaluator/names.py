"""Names derived from a class's name. Standard library only: every layer uses them."""

from __future__ import annotations

import re

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(qualname: str) -> str:
    """`NewGELU` → `new_gelu`, `RMSNorm` → `rms_norm`, `Outer.Inner` → `outer_inner`."""
    return _WORD_START.sub("_", qualname.replace(".", "_")).lower().replace("__", "_")
