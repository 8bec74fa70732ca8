"""What calls do and give."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cutesmith_evaluator.guards import folding
from cutesmith_evaluator.guards.builtin_calls import BuiltinCalls
from cutesmith_evaluator.guards.forbidden import ban_of
from cutesmith_evaluator.guards.tallies import moves_on
from cutesmith_evaluator.guards.torch_names import METHODS, NARROW_METHODS, QUESTIONS, READS, does
from cutesmith_evaluator.guards.values import (
    NOTHING,
    OWN,
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
    Scope,
    Several,
    Text,
    TextMethod,
    Values,
    arrays,
    flattened,
    text_of,
)

_DEEPEST = 24  # calls inside calls that are followed
_KEYED_METHODS = ("get", "setdefault", "pop", "add", "put", "lookup", "__getitem__", "__setitem__", "__contains__")
_CASTS = ("to", "type", "astype", "to_dtype")
_REGISTERS = ("impl", "register_kernel", "register_fake", "define_op")
_STORAGE = ("untyped_storage", "storage", "_typed_storage", "detach")


class Calls(BuiltinCalls):
    def call(self, node: ast.Call, scope: Scope) -> Values:
        called = self.evaluate(node.func, scope)
        given = [self.evaluate(each, scope) for each in node.args]
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        named = {each.arg or "**": self.evaluate(each.value, scope) for each in node.keywords}
        self._look_at_method(node, called, given, named)
        everything = [*given, *named.values()]
        if starred:
            given = [frozenset().union(*given)] * 8
        found = self.apply(called, given, named, node)
        if any(isinstance(value, Address) for each in everything for value in flattened(each)) and not called:
            return found | {Address()} if isinstance(node.func, ast.Attribute) else found
        return found

    def _look_at_method(self, node: ast.Call, called: Values, given: list[Values], named: dict[str, Values]) -> None:
        """What a method's name says where its owner is not known."""
        if not isinstance(node.func, ast.Attribute):
            return
        name, owner = node.func.attr, node.func.value
        if name in _CASTS:
            self.cast(frozenset().union(*given, named.get("dtype", NOTHING)), node)
        if name in _KEYED_METHODS and given and not any(isinstance(value, Method) for value in called):
            self.key(given[0], node)
        if name in ("startswith", "endswith") and isinstance(owner, ast.Name) and owner.id in ("__name__", "__file__"):
            self.evaluator_branch(node)
        if self.on_path and self._is_nobodys(called) and moves_on(node, self.tree) and self.is_shared(owner):
            self.counts(node)
        if name in _REGISTERS and not called:
            self._registered(node, given)

    def _is_nobodys(self, called: Values) -> bool:
        """Whether a method is of nothing that is known, or of a container."""
        return all(isinstance(each, Getter | Several | Path) for each in called)

    def _registered(self, node: ast.Call, given: list[Values]) -> None:
        """`library.impl(name, function, key)`: the function is on the path of whoever calls the op."""
        name = text_of(given[0]) if given else None
        if name is not None and name.startswith("aten::"):
            self.report("monkey-patch", node, f"replaces {name} for everybody; define an op of your own")
        for value in (value for each in given for value in each):
            if isinstance(value, Function):
                self.roots.append(value)

    def apply(self, called: Values, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values:
        everything = frozenset().union(*arguments, *named.values())
        if not called and self.on_path and arrays(everything):
            self.launches = True
        found: Values = NOTHING
        for value in called:
            match value:
                case Path():
                    found |= self._path(value.name, arguments, named, node)
                case Method():
                    found |= self._method(value, arguments, named, node)
                case Function():
                    found |= self._function(value, arguments, named, node)
                case Class():
                    found |= self.instance(value, arguments, named, node)
                case Instance():
                    found |= self._instance_called(value, arguments, named, node)
                case Reference() if not value.is_class:
                    self.attribute(frozenset({value}), "forward", node)
                    found |= OWN
                case Layer():
                    found |= self._layer(value, everything, node)
                case Getter():
                    found |= value.items
                case Several():
                    if arrays(everything) and any(map(self.is_reference, [frozenset(flattened(frozenset({value})))])):
                        self.attribute(frozenset({Reference()}), "forward", node)
                    found |= {value, Several(tuple(arguments))}
                case TextMethod():
                    found |= folding.method(value.text, value.name, arguments)
        return found

    def _layer(self, layer: Layer, everything: Values, node: ast.AST) -> Values:
        if layer.name.startswith("super()"):
            if layer.name.endswith(("forward", "__call__")) and arrays(everything):
                self.attribute(frozenset({Reference()}), "forward", node)
            return NOTHING
        return self.compute(layer.name, node) if arrays(everything) else NOTHING

    def _instance_called(
        self, value: Instance, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST
    ) -> Values:
        method = "forward" if "__call__" not in value.cls.members.names else "__call__"
        return self.apply(self.attribute(frozenset({value}), method, node), arguments, named, node)

    def _path(self, name: str, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values:
        root = name.partition(".")[0]
        if ".__dict__." in name:
            owner, _, method = name.partition(".__dict__.")
            return self._of_namespace(owner, method, arguments, node)
        if root == "torch":
            return self._torch(name, arguments, named, node)
        if root in ("cutlass", "cuda", "tvm_ffi", "triton"):
            self.cast(frozenset({Path(name)}), node) if arguments else None
            if name.endswith(".CUstream") and folding.has_number(node):
                words = "takes a stream by its number: work must be on the caller's current stream; remove it"
                self.report("stream", node, words)
            if self.on_path and arrays(frozenset().union(*arguments)):
                self.launches = True
            return NOTHING
        return self.builtin(name, arguments, named, node)

    def _of_namespace(self, owner: str, method: str, arguments: Sequence[Values], node: ast.AST) -> Values:
        """A method of a module's `__dict__`."""
        if method in ("update", "setdefault", "pop", "clear", "popitem", "__setitem__"):
            self.patches(owner, node)
        names = texts_of(arguments[0]) if arguments else []
        return frozenset().union(*(self.attribute(frozenset({Path(owner)}), name, node) for name in names))

    def _torch(self, name: str, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values:
        if name.startswith("torch.ops."):
            return self._op(name, node)
        last = name.rpartition(".")[2]
        if last in ("__call__", "_call_impl", "forward") and any(self.is_reference(each) for each in arguments):
            return self.attribute(arguments[0], "forward", node)
        self.cast(named.get("dtype", NOTHING), node)
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"):
            return frozenset({Array("state")})
        if name.startswith("torch.nn.") and last[:1].isupper() and does(name) == "compute":
            return frozenset({Layer(name)})
        if name.startswith("torch.library."):
            return self._library(last, arguments, node)
        self.cast(frozenset().union(*arguments[1:]) if name.startswith("torch.Tensor.") else NOTHING, node)
        what = does(name)
        if what == "compute" and ban_of(name) is None:
            return self.compute(name, node)
        if what in ("view", "copy"):
            return frozenset(arrays(frozenset().union(*arguments))) or OWN
        if last == "data_ptr":
            return frozenset({Address()})
        if last in READS:
            return self.reads(node, last)
        return OWN if what == "new" else NOTHING

    def _op(self, name: str, node: ast.AST) -> Values:
        """An op of the file itself is judged where its function is registered."""
        if name.split(".")[2:3] and name.split(".")[2] in self.libraries:
            self.launches = self.launches or self.on_path
            return NOTHING
        return self.compute(name, node)

    def _library(self, last: str, arguments: Sequence[Values], node: ast.AST) -> Values:
        space = text_of(arguments[0]) if arguments else None
        if space is not None:
            self.libraries.add(space.partition("::")[0])
            if space.partition("::")[0] in ("aten", "prims", "prim", "quantized"):
                self.report("monkey-patch", node, f"replaces ops of {space} for everybody; define an op of your own")
        for value in (value for each in arguments for value in each):
            if isinstance(value, Function):
                self.roots.append(value)
        return frozenset({Path(f"torch.library.{last}.registered")}) if last != "Library" else NOTHING

    def _method(self, method: Method, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values:
        name, owner = method.name, method.owner
        if name == "data_ptr":
            return frozenset({Address()})
        if name in _STORAGE:
            return frozenset({owner})
        if name in READS:
            return NOTHING if owner.origin == "state" and name == "item" else self.reads(node, name)
        if name.endswith("_") and not name.endswith("__") and owner.origin != "own" and name != "requires_grad_":
            self.report(
                "writes-input", node, f"writes to its inputs or the module's state ({name}); write to a new tensor"
            )
        if name in NARROW_METHODS:
            self.cast(frozenset({Path(f"torch.{NARROW_METHODS[name]}")}), node)
        if name == "is_set_to":
            self.key(frozenset({owner}), node)
        if name in QUESTIONS:
            return NOTHING
        if name == "as_subclass":
            self.report("tensor-subclass", node, "returns a kind of tensor of its own; return plain tensors")
        elif name not in METHODS:
            return self.compute(f"torch.Tensor.{name}", node)
        return frozenset({owner})

    def _function(
        self, function: Function, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST
    ) -> Values:
        everything = frozenset().union(*arguments, *named.values())
        if function.device:
            self.launches = self.launches or (self.on_path and bool(arrays(everything)))
            return NOTHING
        if function.keyed:
            self.key(everything, node)
        if function.node in self.stack or len(self.stack) > _DEEPEST:
            return NOTHING
        given = [*function.before, *arguments]
        known = (function.node, self.on_path, bool(self.handlers), tuple(given), tuple(sorted(named.items(), key=str)))
        if known not in self.results:
            self.results[known] = NOTHING
            self.results[known] = self.enter(function, given, named)
        return self.results[known]

    def enter(self, function: Function, given: Sequence[Values], named: dict[str, Values]) -> Values:
        """Runs the function's body."""
        scope = Scope(function.scope)
        self.stack.append(function.node)
        try:
            self._bind(function, given, named, scope)
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, scope)
            return self.run(function.node.body, scope)
        finally:
            self.stack.pop()

    def _bind(self, function: Function, given: Sequence[Values], named: dict[str, Values], scope: Scope) -> None:
        formal = function.node.args
        positional = [*formal.posonlyargs, *formal.args]
        spread = named.get("**", NOTHING)
        defaults = [None] * (len(positional) - len(formal.defaults)) + list(formal.defaults)
        for place, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
            values = given[place] if place < len(given) else named.get(argument.arg)
            self._bind_one(argument.arg, values, default, spread, function, scope)
        for argument, default in zip(formal.kwonlyargs, formal.kw_defaults, strict=True):
            self._bind_one(argument.arg, named.get(argument.arg), default, spread, function, scope)
        if formal.vararg:
            scope.put(formal.vararg.arg, frozenset({Several(tuple(given[len(positional) :]))}))
        if formal.kwarg:
            scope.put(formal.kwarg.arg, frozenset({Several(tuple(named.values()))}))

    def _bind_one(
        self,
        name: str,
        values: Values | None,
        default: ast.expr | None,
        spread: Values,
        function: Function,
        scope: Scope,
    ) -> None:
        if values is None:
            values = self.elements(spread) | (self.evaluate(default, function.scope) if default else NOTHING)
        scope.put(name, values)

    def instance(self, cls: Class, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values:
        """An object of a class of the file; there is one for all."""
        if cls not in self.instances:
            self.instances[cls] = Instance(cls)
            made = frozenset({self.instances[cls]})
            on_path, self.on_path = self.on_path, False
            initial = cls.members.names.get("__init__", NOTHING)
            for function in initial:
                if isinstance(function, Function):
                    self.apply(
                        frozenset({Function(function.node, function.scope, before=(made,))}), arguments, named, node
                    )
            self.on_path = on_path
        return frozenset({self.instances[cls]})


def texts_of(values: Values) -> list[str]:
    return [value.value for value in values if isinstance(value, Text)]
