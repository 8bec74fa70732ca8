"""Lets a torch built without CUDA trace a module on device cuda.

Fake tensors need no device, but a few C++ entries ask for the device's guard before they dispatch, and a CPU build has
none: indexing with brackets, a few methods, and `cuda` without an index. This mode goes round exactly these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_aten = torch.ops.aten
# Methods that ask for the guard, and the ops behind them, which do not.
_GUARDED: dict[Callable[..., Any], Callable[..., Any]] = {
    Tensor.copy_: _aten.copy_.default,
    Tensor.contiguous: _aten.contiguous.default,
    Tensor.nonzero: _aten.nonzero.default,
    Tensor.__invert__: _aten.bitwise_not.default,
    torch.nonzero: _aten.nonzero.default,
}
_FILLS = {Tensor.uniform_, Tensor.normal_}  # how layers initialise; a fake parameter has no values to fill


class CudaWithoutBuild(TorchFunctionMode):
    """Rewrites the calls that a CPU build refuses into ones it traces. Enter it around the fake mode."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Mapping | None = None
    ) -> Any:
        if func is Tensor.__getitem__ and _on_cuda(args[0]):
            view, indices = sliced(*args)
            return _aten.index.Tensor(view, _whole_numbers(indices)) if indices else view
        if func is Tensor.__setitem__ and _on_cuda(args[0]):
            return assign(*args)
        if func in _GUARDED and _on_cuda(args[0]):
            return _GUARDED[func](*args, **(kwargs or {}))
        if func in _FILLS and isinstance(args[0], nn.Parameter) and _on_cuda(args[0]):
            return args[0]
        if func is Tensor.cuda:
            return args[0].to(torch.device("cuda", 0))
        return func(*map(_with_index, args), **{name: _with_index(value) for name, value in (kwargs or {}).items()})


def _on_cuda(tensor: Tensor) -> bool:
    return tensor.device.type == "cuda"


def _with_index(value: object) -> object:
    if isinstance(value, torch.device) and value.type == "cuda" and value.index is None:
        return torch.device("cuda", 0)
    return "cuda:0" if isinstance(value, str) and value == "cuda" else value


def _whole_numbers(indices: list[Tensor | None]) -> list[Tensor | None]:
    """Masks as the positions where they hold: the trace of a mask as index asks for the guard again."""
    found: list[Tensor | None] = []
    for index in indices:
        mask = index is not None and index.dtype is torch.bool
        found += _aten.nonzero.default(index).unbind(1) if mask else [index]
    return found


def assign(tensor: Tensor, key: object, value: Tensor | complex) -> None:
    view, indices = sliced(tensor, key)
    if indices:
        values = value if isinstance(value, Tensor) else torch.full((), value, dtype=view.dtype, device=view.device)
        _aten.index_put_.default(view, indices, values.to(view.dtype))
    elif isinstance(value, Tensor):
        _aten.copy_.default(view, value)
    else:
        view.fill_(value)


def sliced(tensor: Tensor, key: object) -> tuple[Tensor, list[Tensor | None]]:
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
