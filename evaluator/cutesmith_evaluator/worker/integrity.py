"""Whether a candidate has replaced functions that it is judged with: PyTorch's, Python's, the module's or ours.

What is found changed is put back before the judge goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter, is_
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import nn

from cutesmith_evaluator.types import Finding

_MODULES = (
    "builtins", "gc", "inspect", "json", "math", "os", "random", "time", "torch", "torch.cuda", "torch.linalg",
    "torch.nn.functional", "torch.autograd", "torch.utils._pytree",
)  # fmt: skip
_TORCH = str(Path(torch.__file__).parent)
_OURS = "cutesmith_evaluator."
_LATE = "torch._dynamo.mutation_guard"  # puts functions of its own into nn.Module when something is first compiled
_HARMLESS = {
    "__annotations__",
    "__doc__",
    "__abstractmethods__",
    "_abc_impl",
    "__static_attributes__",
    "_cutesmith_watch",
}
_KEYS = ("/CUDA", "/CPU", "/CompositeImplicitAutograd", "/CompositeExplicitAutograd", "/Autograd", "/AutogradCUDA")
_MOST = 3  # names in a finding
_CODE = attrgetter("__code__")


@dataclass(frozen=True)
class _Owner:
    """A module, a class or an instance, with what it held when it was first seen."""

    held: Any
    names: tuple[str, ...]
    values: tuple[Any, ...]
    functions: tuple[FunctionType, ...]
    insides: tuple[object, ...]  # a function can be changed and stay the same object
    size: int

    def is_untouched(self) -> bool:
        """Quickly; a number of names that has changed says nothing yet."""
        now = vars(self.held)
        return (
            (len(now) == self.size or isinstance(self.held, ModuleType))
            and all(map(is_, map(now.get, self.names), self.values))
            and all(map(is_, map(_CODE, self.functions), self.insides))
        )


class Integrity:
    """Remembers what callables modules and classes hold. Begin before any judged code is imported."""

    def __init__(self) -> None:
        self._known: dict[int, _Owner] = {}
        self._ops = frozenset[str]()
        self.look_around()

    def look_around(self) -> None:
        """Takes in what has been imported since; what is known already stays as it was first seen."""
        for owner in _owners():
            self.watch(owner)
        self._ops = frozenset(_replaced_ops())

    def watch(self, owner: Any) -> None:
        """`owner`: a module, a class or an instance."""
        if id(owner) not in self._known:
            held = dict(_callables(owner))
            functions = tuple(value for value in held.values() if type(value) is FunctionType)
            codes = tuple(map(_CODE, functions))
            self._known[id(owner)] = _Owner(
                owner, tuple(held), tuple(held.values()), functions, codes, len(vars(owner))
            )

    def watch_module(self, module: nn.Module) -> None:
        """The classes and the instances of a module of the user's."""
        for part in module.modules():
            self.watch(part)
            for cls in type(part).__mro__[:-1]:
                self.watch(cls)

    def restore(self) -> list[str]:
        """The names of what was replaced; all of it is put back."""
        touched = [owner for owner in self._known.values() if not owner.is_untouched()]
        found = [f"{_name(owner.held)}.{name}" for owner in touched for name in _restored(owner)]
        for owner in touched:
            self._known[id(owner.held)] = replace(owner, size=len(vars(owner.held)))
        return [*found, *sorted(_replaced_ops() - self._ops)]

    def finding(self, doing: str, file: str) -> Finding | None:
        """One that names what was replaced by now, if anything; it is put back. `doing`: "being imported"."""
        names = self.restore()
        if not names:
            return None
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        message = (
            f"{', '.join(names[:_MOST])}{more} was replaced while {doing}; a kernel must leave PyTorch, Python and its "
            "judge as they are."
        )
        return Finding("patched", message, None, file)


@cache
def integrity() -> Integrity:
    """The process's one, which knows how things were before its first candidate."""
    return Integrity()


def _owners() -> Iterator[Any]:
    yield from (sys.modules[name] for name in _MODULES if name in sys.modules)
    yield from (torch.Tensor, nn.Module, torch.cuda.Event, torch.cuda.Stream)
    for name, module in list(sys.modules.items()):
        if name.startswith(_OURS) and isinstance(module, ModuleType):
            yield module
            yield from (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == name)


def _callables(owner: Any) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(owner).items()):
        if name == "Storage":  # follows the default dtype, which is a setting
            continue
        if callable(value) or isinstance(value, staticmethod | classmethod | property):
            yield name, value


def _restored(owner: _Owner) -> list[str]:
    now = vars(owner.held)
    held = dict(zip(owner.names, owner.values, strict=True))
    replaced = [
        name for name, value in held.items() if now.get(name) is not value and not _is_pytorchs(now.get(name), value)
    ]
    for name in replaced:
        _put(owner.held, name, held[name])
    recoded = [pair for pair in zip(owner.functions, owner.insides, strict=True) if pair[0].__code__ is not pair[1]]
    for function, code in recoded:
        function.__code__ = code  # type: ignore[assignment]
    return [*replaced, *(function.__name__ for function, _ in recoded), *_taken_away(owner, held)]


def _is_pytorchs(new: Any, old: Any) -> bool:
    """PyTorch wraps or replaces functions of its own when parts of it are imported late."""
    code = getattr(new, "__code__", None)
    if code is None or not code.co_filename.startswith(_TORCH):
        return False
    late = sys.modules.get(_LATE)
    return getattr(new, "__wrapped__", None) is old or (late is not None and new.__globals__ is vars(late))


def _taken_away(owner: _Owner, held: dict[str, Any]) -> list[str]:
    """What was added to a class or an instance hides what it had from elsewhere."""
    if isinstance(owner.held, ModuleType):
        return []
    added = [name for name, _ in _callables(owner.held) if name not in held and name not in _HARMLESS]
    for name in added:
        (type.__delattr__ if isinstance(owner.held, type) else object.__delattr__)(owner.held, name)
    return added


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, ModuleType):
        vars(owner)[name] = value
    else:
        (type.__setattr__ if isinstance(owner, type) else object.__setattr__)(owner, name, value)


def _replaced_ops() -> set[str]:
    """PyTorch's own ops that Python code has given other implementations, on a device or for all."""
    registered: set[str] = getattr(torch.library, "_impls", set())
    return {name for name in registered if name.startswith("aten/") and name.endswith(_KEYS)}


def _name(owner: Any) -> str:
    if isinstance(owner, ModuleType):
        return owner.__name__
    return owner.__qualname__ if isinstance(owner, type) else type(owner).__qualname__
