"""What attributes of values are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cutesmith_evaluator.guards.bans import JUDGE
from cutesmith_evaluator.guards.expressions import Expressions
from cutesmith_evaluator.guards.folding import METHODS as TEXT_METHODS
from cutesmith_evaluator.guards.forbidden import INSIDES, JUDGES_OWN
from cutesmith_evaluator.guards.tallies import REMEMBERED
from cutesmith_evaluator.guards.torch_names import PLAIN_ATTRIBUTES, VIEW_ATTRIBUTES
from cutesmith_evaluator.guards.values import (
    NOTHING,
    Address,
    Array,
    Class,
    Function,
    Getter,
    Instance,
    Layer,
    Method,
    Path,
    Reference,
    Several,
    Text,
    TextMethod,
    Value,
    Values,
)

_CALLING = ("forward", "__call__", "_call_impl", "_wrapped_call_impl", "_slow_forward")
_GETTERS = ("get", "pop", "setdefault", "values", "items", "copy", "popitem", "__getitem__", "__iter__")
_TALLIES = ("cache_info", "cache_parameters")
_NAMES = ("__module__", "__qualname__", "__name__")
_IDENTITIES = ("_version", "_cdata", "__hash__", "_base")


class Attributes(Expressions):
    def attribute(self, base: Values, name: str, node: ast.AST) -> Values:
        if name in INSIDES and not (name == "__self__" and not base):
            self.report("introspection", node, f"reads {name}, which leads into the interpreter; remove it")
        if name in REMEMBERED and self.on_path:
            self.counts(node)
        return frozenset(found for value in base for found in self._of(value, name, node))

    def _of(self, value: Value, name: str, node: ast.AST) -> Iterator[Value]:
        match value:
            case Path():
                yield from self.touch(f"{value.name}.{name}", node)
            case Array():
                yield from self._of_array(value, name, node)
            case Text() if name in TEXT_METHODS:
                yield TextMethod(value.value, name)
            case Reference():
                yield from self._of_reference(value, name, node)
            case Layer():
                yield from self._of_layer(value, name)
            case Instance():
                yield from self._of_instance(value, name)
            case Class():
                yield from self._of_class(value, name)
            case Several():
                items = self.elements(frozenset({value}))
                yield from (frozenset({Getter(items)}) if name in _GETTERS else items)
            case Function() if value.keyed and name in _TALLIES:
                self.report("call-counter", node, f"asks for {name}, which tells how often it was called; remove it")
            case Function():
                yield from self.extras.get((value.node, name), NOTHING)

    def _of_array(self, value: Array, name: str, node: ast.AST) -> Iterator[Value]:
        if name in VIEW_ATTRIBUTES:
            yield value
        elif name in _IDENTITIES:
            yield Address()
        elif name == "grad" and value.origin != "own":
            self.report("reads-gradient", node, "reads a gradient; the result must depend on the inputs alone")
        elif name == "__class__":
            yield Path("torch.Tensor")
        elif name in JUDGES_OWN or (name == "__dict__" and self.on_path):
            self.report("evaluator-branch", node, f"asks a tensor for {name}, which {JUDGE.words}")
        elif name not in PLAIN_ATTRIBUTES:
            yield Method(value, name)

    def _of_reference(self, value: Reference, name: str, node: ast.AST) -> Iterator[Value]:
        if name in _CALLING:
            self._calls_reference(node)
        elif name == "__class__":
            yield Reference(is_class=True)
        elif name in _NAMES and self.on_path:
            self.report("evaluator-branch", node, f"asks for the module's {name}, which {JUDGE.words}")
        elif name in self.signature.state:
            yield Array("state")
        elif not value.is_class:
            yield Layer(f"module.{name}")

    def _calls_reference(self, node: ast.AST) -> None:
        words = "uses the module's own forward, which is what the kernel is compared with; compute the result"
        self.report("calls-reference", node, words)

    def _of_layer(self, value: Layer, name: str) -> Iterator[Value]:
        path = f"{value.name}.{name}"
        if path.removeprefix("module.") in self.signature.state or name in ("weight", "bias"):
            yield Array("state")
        else:
            yield Layer(path)

    def _of_instance(self, value: Instance, name: str) -> Iterator[Value]:
        if name in value.attributes:
            yield from value.attributes[name]
            return
        for member in self._inherited(value.cls, name):
            if isinstance(member, Function) and _is_property(member):
                yield from self.apply(frozenset({member}), [frozenset({value})], {}, member.node)
            elif isinstance(member, Function) and not _is_static(member):
                yield Function(member.node, member.scope, member.device, member.keyed, (frozenset({value}),))
            else:
                yield member
        if not self._inherited(value.cls, name) and not name.startswith("__"):
            yield Layer(f"self.{name}")

    def _of_class(self, value: Class, name: str) -> Values:
        if name == "apply" and "torch.autograd.Function" in value.bases:
            forward = [each for each in value.members.names.get("forward", NOTHING) if isinstance(each, Function)]
            return frozenset(Function(each.node, each.scope, before=(NOTHING,)) for each in forward)
        return self._inherited(value, name)

    def _inherited(self, cls: Class, name: str) -> Values:
        """A member of the class, or of one of the file's that it derives from."""
        if name in cls.members.names:
            return cls.members.names[name]
        return frozenset().union(*(self._inherited(parent, name) for parent in cls.parents))


def _is_static(function: Function) -> bool:
    return _decorators(function) & {"staticmethod"} != set()


def _is_property(function: Function) -> bool:
    return bool(_decorators(function) & {"property", "cached_property"})


def _decorators(function: Function) -> set[str]:
    return {ast.unparse(each).rpartition(".")[2] for each in getattr(function.node, "decorator_list", [])}
