"""What a kernel's module is called, and how the file it serves imports it."""

from __future__ import annotations

import re
from pathlib import Path

from cutesmith_agent.source.outline import class_nodes, kernel_of
from cutesmith_agent.source.parsing import Source

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """`NewGELU` → `new_gelu`, `Outer.Inner` → `outer_inner`."""
    return _HUMP.sub("_", name).replace(".", "_").lower()


def kernel_module(source: Source, qualname: str, file: Path) -> str:
    """The module name of a class's kernel: the one its guard names, else `<class>_cute`.

    Where `<class>_cute.py` already lies beside the file and belongs to another file, the file's own name joins in."""
    used = next((kernel_of(source, found) for found in class_nodes(source) if found.qualname == qualname), None)
    if used:
        return used
    plain = f"{snake_case(qualname)}_cute"
    if not file.with_name(f"{plain}.py").exists():
        return plain
    stem = re.sub(r"\W", "_", file.stem)
    return f"{snake_case(qualname)}_{snake_case(stem)}_cute"


def is_in_package(file: Path) -> bool:
    """Whether the file is imported as part of a package, so that its kernel is imported relatively."""
    return file.with_name("__init__.py").exists()
