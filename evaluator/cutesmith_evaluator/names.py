"""Names derived from a class's name. Standard library only: every layer uses them."""

from __future__ import annotations

import re

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def attribute_expression(path: str) -> str:
    """An attribute's path as Python after `module.`: `layers.0.weight` → `layers[0].weight`."""
    parts = path.split(".")
    if parts[0].isidentifier() and all(part.isidentifier() or part.isdigit() for part in parts):
        return re.sub(r"\.(\d+)", r"[\1]", path)
    owners = parts[:-1] if parts[-1].isidentifier() else parts
    return ".".join([f"get_submodule({'.'.join(owners)!r})", *parts[len(owners) :]]) if path else ""


def state_expression(path: str) -> str:
    """The path of a parameter or buffer as Python after `module.`: what a `ParameterDict` has under "0" or "in-put" is
    no attribute, and by an index only a `ParameterList`'s is found: `table.0` → `table.__getattr__('0')`."""
    owner, _, name = path.rpartition(".")
    if name.isidentifier():
        return attribute_expression(path)
    return f"{attribute_expression(owner)}.".removeprefix(".") + f"__getattr__({name!r})"


def snake_case(qualname: str) -> str:
    """`NewGELU` → `new_gelu`, `RMSNorm` → `rms_norm`, `Outer.Inner` → `outer_inner`."""
    return _WORD_START.sub("_", qualname.replace(".", "_")).lower().replace("__", "_")
