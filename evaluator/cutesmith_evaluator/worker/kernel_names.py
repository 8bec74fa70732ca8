"""A kernel's symbol, as a person knows it."""

from __future__ import annotations

import ast
from pathlib import Path


def function_name(symbol: str, path: Path) -> str:
    """The candidate's function behind "kernel_cutlass_<function>_<argument types>"; without the types of tensors where
    it is no function of the file."""
    mangled = symbol.removeprefix("kernel_cutlass_")
    functions = [node.name for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.FunctionDef)]
    own = (name for name in functions if mangled.startswith(name))
    return max(own, key=len, default=mangled.partition("_tensorptr")[0])
