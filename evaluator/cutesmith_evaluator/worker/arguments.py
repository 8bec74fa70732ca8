"""Arguments of a traced op as values of the wire, in the schema's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from cutesmith_evaluator.types import Arg, Ref

# Where a value lies and how memory is laid out says nothing about what is computed.
_PLACEMENT = {"device", "layout", "pin_memory", "memory_format", "non_blocking"}


def completed(node: fx.Node, ref_of: Callable[[fx.Node], Ref]) -> tuple[tuple[Arg, ...], dict[str, Arg]]:
    """Positional arguments with their defaults filled in, and keyword-only ones by name.

    Dtypes become strings ("float32"), nodes become `Ref`. Raises TypeError on a value that the wire cannot carry.
    """
    args: list[Arg] = []
    kwargs: dict[str, Arg] = {}
    assert isinstance(node.target, OpOverload)
    for place, formal in enumerate(node.target._schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(formal.name, formal.default_value)
        if not formal.kwarg_only:
            args.append(as_arg(given, ref_of))
        elif formal.name not in _PLACEMENT:
            kwargs[formal.name] = as_arg(given, ref_of)
    return tuple(args), kwargs


def as_arg(value: Any, ref_of: Callable[[fx.Node], Ref]) -> Arg:
    match value:
        case fx.Node():
            return ref_of(value)
        case torch.dtype():
            return dtype_name(value)
        case list() | tuple():
            return tuple(as_arg(item, ref_of) for item in value)
        case None | bool() | int() | float() | str():
            return value
        case torch.device() | torch.layout() | torch.memory_format():
            return str(value)
    raise TypeError(f"an argument of type {type(value).__name__}")


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
