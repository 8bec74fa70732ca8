"""Which Python values a module's forward reads, so that a kernel can be guarded on them.

A watched object's class is swapped for a subclass that notes attribute reads. Reads by torch's own machinery do not
count, those by `torch.nn` layers do. Parameters, buffers and submodules are the graph's business, not a guard's.
"""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

from cutesmith_evaluator.names import attribute_expression, state_expression
from cutesmith_evaluator.types import Arg, Guard

_BASE_NAMES = frozenset(vars(nn.Module())) - {"training"}


@dataclass
class Watch:
    """What was read (values by expression), what cannot be guarded and what was written, while `reading`."""

    reading: bool = False
    values: dict[str, Arg] = field(default_factory=dict)
    ties: dict[str, str] = field(default_factory=dict)  # path → that of the same object
    unguardable: dict[str, str] = field(default_factory=dict)  # path → what it is
    written: dict[str, int] = field(default_factory=dict)  # path → line

    def guards(self) -> tuple[Guard, ...]:
        values = (Guard(value, path=path) for path, value in sorted(self.values.items()))
        return (*values, *(Guard(None, path=path, same_as=first) for path, first in sorted(self.ties.items())))

    def note_read(self, path: str, value: object) -> None:
        if isinstance(value, torch.Tensor | nn.Module | ModuleType):
            return
        if isinstance(value, MethodType):
            self._note_method(path, value)
        elif is_plain(value):
            self.values[path] = value  # pyright: ignore[reportArgumentType]
        elif isinstance(value, enum.Enum):
            self.values[f"{path}.name"] = value.name
        elif isinstance(value, torch.dtype):
            self.values[f"{path}.__repr__()"] = repr(value)
        elif name := _qualified_name(value):
            self.values[path] = name
        elif not _watch_object(value, path, self):
            self.unguardable[path] = f"a {type(value).__name__}"

    def _note_method(self, path: str, method: MethodType) -> None:
        """A subclass may have another: its class is guarded, as submodules' are anyhow. Torch's own come with these."""
        if path.isidentifier() and not (getattr(method.__func__, "__module__", None) or "").startswith("torch."):
            self.values["__class__.__qualname__"] = type(method.__self__).__qualname__


def watch_module(module: nn.Module) -> Watch:
    """Notes reads of `module` and its submodules from now on; the module is not usable for anything else afterwards."""
    watch = Watch(values=_structure(module), ties=_ties(module))
    for path, part in module.named_modules():
        if not _watch_object(part, attribute_expression(path), watch):
            watch.unguardable[path or "__class__"] = f"a {type(part).__name__}"
    watch.reading = True
    return watch


def is_plain(value: object) -> bool:
    """Whether a guard holds the value as it is. A string with a colon would read as a function's name."""
    if isinstance(value, str):
        return type(value) is str and ":" not in value
    if type(value) is tuple or isinstance(value, torch.Size):
        return all(map(is_plain, value))
    return value is None or type(value) in (bool, int, float)


def _structure(module: nn.Module) -> dict[str, Arg]:
    """Classes of the submodules, how many there are of each module's, and parameters that are absent: what other
    constructor arguments would change."""
    found: dict[str, Arg] = {}
    for name, part in module.named_modules():
        path = attribute_expression(name)
        prefix = f"{path}." if path else ""
        if path:
            found |= _class_of(path, type(part))
        if part._modules:
            found[f"{prefix}_modules.__len__()"] = len(part._modules)
        absent = [key for state in (part._parameters, part._buffers) for key, value in state.items() if value is None]
        found |= dict.fromkeys((prefix + key for key in absent), None)
    return found


def _class_of(path: str, cls: type) -> dict[str, Arg]:
    if getattr(nn, cls.__name__, None) is cls:
        return {f"{path}.__class__": f"torch.nn:{cls.__name__}"}
    return {f"{path}.__class__.__qualname__": cls.__qualname__}


def _ties(module: nn.Module) -> dict[str, str]:
    """Submodules, parameters and buffers that go by more than one name: others of the class may have two of them."""
    first: dict[int, str] = {}
    ties: dict[str, str] = {}
    tied: list[str] = []
    for name, part in module.named_modules(remove_duplicate=False):
        if name.startswith(tuple(f"{other}." for other in tied)):
            continue
        path = attribute_expression(name)
        if first.setdefault(id(part), path) != path:
            ties[path] = first[id(part)]
            tied.append(name)
            continue
        for key, value in (*part._parameters.items(), *part._buffers.items()):
            own = state_expression(f"{name}.{key}" if name else key)
            if value is not None and first.setdefault(id(value), own) != own:
                ties[own] = first[id(value)]
    return ties


def _qualified_name(value: object) -> str | None:
    """`module:qualname` of a function or class as it gives them itself; None where these do not tell it apart."""
    owner, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not callable(value) or not isinstance(owner, str) or not isinstance(name, str) or "<" in name:
        return None
    return f"{owner}:{name}"


def _watch_object(target: Any, path: str, watch: Watch) -> bool:
    cls = type(target)
    if hasattr(cls, "_cutesmith_watch"):
        return True
    if isinstance(target, dict | list | set | FunctionType) or not hasattr(target, "__dict__"):
        return False
    try:
        object.__setattr__(target, "__class__", _watched_class(cls, path, watch))
    except TypeError:  # a layout of its own: ScriptModule and other extension types
        return False
    return True


def _watched_class(cls: Any, path: str, watch: Watch) -> type:
    prefix = f"{path}." if path else ""

    def __getattribute__(self: Any, name: str) -> Any:  # noqa: N807
        value = cls.__getattribute__(self, name)
        if watch.reading and name not in _BASE_NAMES and not name.startswith("__") and _is_forward(sys._getframe(1)):
            watch.note_read(prefix + name, value)
        return value

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        try:
            return cls.__getattr__(self, name)
        except AttributeError:
            if watch.reading and _is_users(sys._getframe(1)):
                watch.unguardable[prefix + name] = "an attribute that is not there"
            raise

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if watch.reading and _is_forward(frame := sys._getframe(1)):
            watch.written[prefix + name] = frame.f_lineno
        cls.__setattr__(self, name, value)

    namespace = {
        "__getattribute__": __getattribute__,
        "__setattr__": __setattr__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__slots__": (),
        "_cutesmith_watch": watch,
        **({"__getattr__": __getattr__} if hasattr(cls, "__getattr__") else {}),
    }
    return type(cls)(cls.__name__, (cls,), namespace)


def _is_forward(frame: Any) -> bool:
    """Whether the frame runs a forward (the user's code or a layer of torch.nn), not torch's machinery."""
    name = frame.f_globals.get("__name__", "")
    if name.startswith("torch.nn.modules."):
        return name != "torch.nn.modules.module"
    return not name.startswith(("torch.", "cutesmith_evaluator."))


def _is_users(frame: Any) -> bool:
    return not frame.f_globals.get("__name__", "").startswith(("torch.", "cutesmith_evaluator."))
