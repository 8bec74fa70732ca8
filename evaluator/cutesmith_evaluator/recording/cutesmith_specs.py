"""Arguments by what they are, as keys to count by and as JSON: of a tensor its dtype, shape and strides, no contents.

Standard library and the user's torch; see `cutesmith_recorder.py`.
"""

from __future__ import annotations

import sys
from typing import Any

_LONGEST, _DEEPEST, _WIDEST = 200, 4, 64  # characters of a text, nesting, items of a container
_BITS = 63  # of an integer
_PLAIN = frozenset((bool, int, float, str, type(None)))
Key = tuple[Any, ...]


class Specs:
    """Made once torch is there."""

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self._tensors = frozenset((torch.Tensor, torch.nn.Parameter))
        self._named = (torch.dtype, torch.device)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key:
        """The key of a call's arguments."""
        tensors = self._tensors
        specs: Key = ()
        for each in args:  # no comprehension: before Python 3.12 it costs a call
            if type(each) in tensors:
                specs += (("tensor", each.dtype, each.shape, each.stride()),)
            else:
                specs += (self.of(each),)
        return (specs, tuple([(name, self.of(value)) for name, value in kwargs.items()]) if kwargs else ())

    def of(self, value: Any, depth: int = 0) -> Key:
        kind = type(value)
        if kind in self._tensors:
            return ("tensor", value.dtype, value.shape, value.stride())
        if kind in _PLAIN:
            return (kind, value) if _is_short(value) else ("opaque", f"a long {kind.__name__}")
        if kind in (tuple, list) and depth < _DEEPEST and len(value) <= _WIDEST:
            return (kind, tuple([self.of(item, depth + 1) for item in value]))
        if kind is dict and depth < _DEEPEST and len(value) <= _WIDEST and all(type(name) is str for name in value):
            return (kind, tuple([(name, self.of(item, depth + 1)) for name, item in value.items()]))
        if kind in self._named:
            return (kind, str(value))
        return ("opaque", f"{kind.__module__}.{kind.__qualname__}"[:_LONGEST])

    def json_of_call(self, key: Key) -> dict[str, Any]:
        """A key of `call`: {"args": [...], "kwargs": {...}}."""
        args, kwargs = key
        return {"args": [self.json(each) for each in args], "kwargs": {name: self.json(each) for name, each in kwargs}}

    def json(self, key: Key) -> dict[str, Any]:
        """A key of `of`: an object with one member, whose name says what it is."""
        kind = key[0]
        if kind == "tensor":
            _, dtype, shape, strides = key
            return {"tensor": {"dtype": _name(dtype), "shape": [*map(int, shape)], "strides": [*map(int, strides)]}}
        if kind == "opaque":
            return {"opaque": key[1]}
        if kind in (tuple, list):
            return {kind.__name__: [self.json(item) for item in key[1]]}
        if kind is dict:
            return {"dict": {name: self.json(item) for name, item in key[1]}}
        return {kind.__name__: _name(key[1])} if kind in self._named else {"value": key[1]}


def _is_short(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= _LONGEST
    return type(value) is not int or value.bit_length() <= _BITS


def _name(value: Any) -> str:
    return str(value).removeprefix("torch.")
