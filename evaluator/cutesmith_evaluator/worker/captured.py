"""A module and its inputs as a real run had them: built again from what `cutesmith capture` recorded.

The values are drawn anew, for no contents were recorded: floating ones are normal, integers 0 or 1 (indices that fit
anything), truth values either.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_NARROW = ("float8", "float4")  # dtypes that nothing draws


@dataclass(frozen=True)
class Captured:
    """One recorded call, `text` as JSON: {"init", "args", "kwargs", "dtype"} (docs/capture.md)."""

    text: str

    @property
    def _data(self) -> dict[str, Any]:
        return json.loads(self.text)

    def make_init(self) -> object:
        """Positional and keyword arguments of the constructor."""
        init = self._data["init"] or {"args": [], "kwargs": {}}
        return [_values(init["args"]), {name: _value(each) for name, each in init["kwargs"].items()}]

    def make_inputs(self, cls: type[nn.Module]) -> Callable[[], object]:
        """A function that draws the arguments of forward, by position. Its result raises TypeError where they do not
        fit the signature that forward has now."""

        def captured_inputs() -> object:
            data = self._data
            kwargs = {name: _value(each) for name, each in data["kwargs"].items()}
            args = _values(data["args"])
            if not kwargs:
                return args
            bound = inspect.signature(cls.forward).bind(None, *args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise TypeError(f"{', '.join(bound.kwargs)} can be given by keyword only, and a kernel has none")
            return list(bound.args[1:])

        return captured_inputs

    def in_dtype(self, module: nn.Module) -> nn.Module:
        """The module converted as the recorded one was, where its parameters are of another floating dtype."""
        wanted = self._data.get("dtype")
        own = next((each.dtype for each in module.parameters() if each.dtype.is_floating_point), None)
        if wanted is None or own is None or own == getattr(torch, wanted):
            return module
        return module.to(getattr(torch, wanted))


def _values(specs: Sequence[dict[str, Any]]) -> list[object]:
    return [_value(spec) for spec in specs]


def _value(spec: dict[str, Any]) -> object:
    ((kind, what),) = spec.items()
    match kind:
        case "tensor":
            return _tensor(getattr(torch, what["dtype"]), what["shape"], what["strides"])
        case "list" | "tuple":
            return tuple(_values(what)) if kind == "tuple" else _values(what)
        case "dict":
            return {name: _value(each) for name, each in what.items()}
        case "dtype":
            return getattr(torch, what)
        case "device":
            return torch.device("cpu")  # where modules are built; they are moved afterwards
        case "value":
            return what
    raise TypeError(f"a captured argument was a {what}, which cannot be made again")


def _tensor(dtype: torch.dtype, shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """Of fresh values, with the same shape and strides, elements that share memory among them."""
    reach = 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return _drawn(dtype, reach).as_strided(shape, strides)


def _drawn(dtype: torch.dtype, count: int) -> Tensor:
    if dtype == torch.bool or not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(0, 2, (count,), dtype=torch.int8).to(dtype)
    if any(word in str(dtype) for word in _NARROW):
        return torch.randn(count).to(dtype)
    return torch.randn(count, dtype=dtype)
