"""Inputs made small from the start: the task's own functions, with the sizes that they ask torch for replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs

Shape = tuple[int, ...]

_FACTORIES = {torch.rand, torch.randn, torch.randint, torch.zeros, torch.ones, torch.empty, torch.full, torch.normal}
_LARGEST = 1 << 26  # elements of a tensor on the way that may keep its size


def drawn_at(draw: Callable[[], Inputs], shapes: Mapping[Shape, Shape]) -> Inputs | None:
    """What `draw` gives when tensors of the shapes on the left are made in those on the right; None where it fails.

    The caller looks whether the shapes came out as wanted.
    """
    try:
        with _OtherSizes(shapes):
            return draw()
    except TaskError:
        return None


class _OtherSizes(TorchFunctionMode):
    def __init__(self, shapes: Mapping[Shape, Shape]) -> None:
        super().__init__()
        self._shapes = shapes

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            whole = args if args and all(isinstance(each, int) for each in args) else None
            args = self._replaced(whole) if whole is not None else tuple(map(self._replaced, args))
            kwargs = {name: self._replaced(value) for name, value in kwargs.items()}
        return func(*args, **kwargs)

    def _replaced(self, value: Any) -> Any:
        if not isinstance(value, list | tuple) or not all(isinstance(each, int) for each in value):
            return value
        shape = self._shapes.get(tuple(value), tuple(value))
        if prod(shape) > _LARGEST:
            raise MemoryError("a tensor on the way keeps its size")
        return shape
