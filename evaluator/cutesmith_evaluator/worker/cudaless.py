"""Lets a torch built without CUDA trace a module on device cuda.

Fake tensors need no device, but a few methods ask C++ for the device's guard before they dispatch, and a CPU build has
none: indexing with brackets, `contiguous`, `copy_`, `nonzero`, `~`, and any move to `cuda` without an index. Inside
`cuda_without_build` these methods call the ops behind them, which do not ask. They are replaced on the class, since a
torch-function mode does not reach into functions of torch that are overridable themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


@contextmanager
def cuda_without_build() -> Iterator[None]:
    """Inside, methods of CUDA tensors go round the guard. For the fake tensors of one thread only."""
    own = {name: vars(Tensor)[name] for name in _METHODS if name in vars(Tensor)}
    for name, replacement in _METHODS.items():
        setattr(Tensor, name, replacement(getattr(Tensor, name)))
    try:
        yield
    finally:
        for name in _METHODS:
            delattr(Tensor, name)
        for name, original in own.items():
            setattr(Tensor, name, original)


def _on_cuda(instead: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`instead` for CUDA tensors, the original method for others."""

    def replacement(original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return (instead if self.device.type == "cuda" else original)(self, *args, **kwargs)

        return method

    return replacement


def _moved(original: Callable[..., Any]) -> Callable[..., Any]:
    def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return original(self, *map(_with_index, args), **{name: _with_index(value) for name, value in kwargs.items()})

    return to


def _moved_to_cuda(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: self.to(torch.device("cuda", 0))


def _with_index(value: object) -> object:
    if isinstance(value, torch.device | str) and str(value) == "cuda":
        return torch.device("cuda", 0)
    return value


def read(tensor: Tensor, key: object) -> Tensor:
    """`tensor[key]`"""
    view, indices = _sliced(tensor, key)
    return _aten.index.Tensor(view, _whole_numbers(indices)) if indices else view


def assign(tensor: Tensor, key: object, value: Tensor | complex) -> None:
    """`tensor[key] = value`"""
    view, indices = _sliced(tensor, key)
    if indices:
        values = value if isinstance(value, Tensor) else torch.full((), value, dtype=view.dtype, device=view.device)
        _aten.index_put_.default(view, indices, values.to(view.dtype))
    elif isinstance(value, Tensor):
        _aten.copy_.default(view, value)
    else:
        view.fill_(value)


def _whole_numbers(indices: list[Tensor | None]) -> list[Tensor | None]:
    """Masks as the positions where they hold: the trace of a mask as index asks for the guard again."""
    found: list[Tensor | None] = []
    for index in indices:
        mask = index is not None and index.dtype is torch.bool
        found += _aten.nonzero.default(index).unbind(1) if mask else [index]
    return found


def _sliced(tensor: Tensor, key: object) -> tuple[Tensor, list[Tensor | None]]:
    """`tensor` after the slices, integers and new axes of `key`, and what is left to index with: a tensor per axis."""
    view, axis = _aten.alias(tensor), 0
    indices: list[Tensor | None] = []
    for item in _without_ellipsis(key, tensor.dim()):
        match item:
            case None:
                view = view.unsqueeze(axis)
                axis += 1
            case slice():
                view = _slice(view, axis, item)
                axis += 1
            case Tensor() | list():
                index = torch.tensor(item, device=view.device) if isinstance(item, list) else item
                indices += [None] * (axis - len(indices)) + [index]
                axis += index.dim() if index.dtype is torch.bool else 1
            case _:
                view = view.select(axis, int(item))
    return view, indices


def _slice(view: Tensor, axis: int, item: slice) -> Tensor:
    if item == slice(None):
        return view
    return _aten.slice.Tensor(view, axis, item.start, item.stop, 1 if item.step is None else item.step)


def _without_ellipsis(key: object, dims: int) -> list[Any]:
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(_axes_used(item) for item in items)
    for place, item in enumerate(items):
        if item is Ellipsis:
            return items[:place] + [slice(None)] * (dims - used) + items[place + 1 :]
    return items


def _axes_used(item: object) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.dim() if isinstance(item, Tensor) and item.dtype is torch.bool else 1


_METHODS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "__getitem__": _on_cuda(read),
    "__setitem__": _on_cuda(assign),
    "contiguous": _on_cuda(_aten.contiguous.default),
    "copy_": _on_cuda(_aten.copy_.default),
    "nonzero": _on_cuda(_aten.nonzero.default),
    "__invert__": _on_cuda(_aten.bitwise_not.default),
    "to": _moved,
    "cuda": _moved_to_cuda,
}
