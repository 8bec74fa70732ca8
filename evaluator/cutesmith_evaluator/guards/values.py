"""What the analysis knows of a value: where a name leads, and what is a tensor. An expression has any of several."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Path:
    """Something that is imported or built in, by its dotted name: "torch.nn.functional.relu", "builtins.eval"."""

    name: str


@dataclass(frozen=True)
class Text:
    """A string that is known."""

    value: str


@dataclass(frozen=True)
class Array:
    """A tensor: an argument of forward, state of a module, or one that the candidate made itself."""

    origin: Literal["input", "state", "own"]


@dataclass(frozen=True)
class Method:
    """A tensor's method, not called yet."""

    owner: Array
    name: str


@dataclass(frozen=True)
class TextMethod:
    """A known string's method, not called yet."""

    text: str
    name: str


@dataclass(frozen=True)
class Getter:
    """What gives one of `items` when it is called: a container's method."""

    items: Values


@dataclass(frozen=True)
class Address:
    """What identifies a tensor or an object rather than its kind: a pointer, an id, a version."""


@dataclass(frozen=True)
class Reference:
    """The reference's module, as a candidate of our contract gets it. `is_class`: its class."""

    is_class: bool = False


@dataclass(frozen=True)
class Layer:
    """A submodule or an attribute of a module, by the name under which a call of it is declared."""

    name: str


@dataclass(frozen=True)
class Several:
    """A tuple, list, set or the values of a dictionary."""

    items: tuple[Values, ...]


@dataclass(frozen=True, eq=False)
class Function:
    """A function or lambda of the file. `device`: it runs on the GPU. `keyed`: its results are cached by arguments."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    device: bool = False
    keyed: bool = False
    before: tuple[Values, ...] = ()  # arguments that are bound: self, or those of functools.partial


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the file. `bases`: dotted names of classes from elsewhere; `parents`: classes of the file."""

    node: ast.ClassDef
    scope: Scope
    members: Scope
    bases: tuple[str, ...]
    parents: tuple[Class, ...] = ()


@dataclass(frozen=True, eq=False)
class Instance:
    """An object of a class of the file; its attributes are one for all."""

    cls: Class
    attributes: dict[str, Values] = field(default_factory=dict)


Value = (
    Path
    | Text
    | TextMethod
    | Getter
    | Array
    | Method
    | Address
    | Reference
    | Layer
    | Several
    | Function
    | Class
    | Instance
)
Values = frozenset[Value]
NOTHING: Values = frozenset()  # a number, or something that is not known


@dataclass(eq=False)
class Scope:
    """Names of a function or of the file."""

    parent: Scope | None = None
    names: dict[str, Values] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)  # declared global or nonlocal here
    is_class: bool = False

    def find(self, name: str) -> Values | None:
        if name in self.names:
            return self.names[name]
        return self._enclosing(name)

    def _enclosing(self, name: str) -> Values | None:
        outer = self.parent
        while outer is not None and outer.is_class:
            outer = outer.parent
        return outer.find(name) if outer is not None else None

    def holds(self, name: str) -> bool:
        """Whether it is a name of this function alone."""
        return self.parent is not None and name in self.names and name not in self.shared

    def put(self, name: str, values: Values) -> None:
        """Adds what a name may be: branches are not told apart."""
        target = self
        while name in target.shared and target.parent is not None:
            target = target.parent
        known = target.names.get(name, NOTHING)
        target.names[name] = values if len(known) > _MOST else known | values


_MOST = 24  # values of one name, after which older ones are forgotten


def flattened(values: Values) -> Values:
    """With what tuples hold."""
    found: set[Value] = set()
    for value in values:
        if isinstance(value, Several):
            for item in value.items:
                found |= flattened(item)
        found.add(value)
    return frozenset(found)


def arrays(values: Values) -> list[Array]:
    return [value for value in flattened(values) if isinstance(value, Array)]


def text_of(values: Values) -> str | None:
    """The string that it is, where it is one and known."""
    texts = [value.value for value in values if isinstance(value, Text)]
    return texts[0] if len(texts) == 1 and len(values) == 1 else None


def paths(values: Values) -> list[str]:
    return [value.name for value in values if isinstance(value, Path)]


OWN: Values = frozenset({Array("own")})
