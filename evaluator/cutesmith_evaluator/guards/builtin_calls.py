"""Calls of Python's own functions, and of the standard library's that hand on functions and names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from cutesmith_evaluator.guards.attributes import Attributes
from cutesmith_evaluator.guards.bans import JUDGE
from cutesmith_evaluator.guards.folding import turned
from cutesmith_evaluator.guards.forbidden import READABLE, asks_for_the_judges, ban_of
from cutesmith_evaluator.guards.tallies import grown_by
from cutesmith_evaluator.guards.values import (
    NOTHING,
    Address,
    Array,
    Class,
    Function,
    Instance,
    Layer,
    Path,
    Reference,
    Several,
    Text,
    Value,
    Values,
    arrays,
    flattened,
    paths,
    text_of,
)

_READING = ("float", "int", "bool", "complex")
_COMPUTING = ("sum", "max", "min", "abs", "pow", "round", "divmod", "any", "all")
_HANDING = (
    "tuple", "list", "set", "frozenset", "dict", "zip", "enumerate", "iter", "next", "sorted", "slice", "filter",
)  # fmt: skip
_IDENTIFYING = ("str", "repr", "hex", "format", "ascii", "bytes", "int", "hash", "oct", "bin")
_HIGHER = ("builtins.map", "itertools.starmap", "itertools.accumulate")
_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.Call)
_KEYED = ("functools.cache", "functools.lru_cache")


class BuiltinCalls(Attributes):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self.launches = False  # something that is not known got a tensor on the path
        self.roots: list[Function] = []  # implementations of ops
        self.results: dict[object, Values] = {}
        self.instances: dict[Class, Instance] = {}

    def builtin(self, name: str, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values:
        last = name.rpartition(".")[2]
        first = arguments[0] if arguments else NOTHING
        everything = frozenset().union(*arguments, *named.values())
        if name == "builtins.getattr":
            return self._getattr(arguments, node)
        if last in ("setattr", "delattr", "__setattr__", "__delattr__"):
            return self._setattr(arguments, node)
        if name in ("builtins.__import__", "importlib.import_module"):
            return self._import(first, node)
        if last in ("__repr__", "__hash__", "__str__") and arrays(everything):
            return frozenset({Address()})
        if name.startswith(("os.environ", "os.getenv")):
            return self._environment(name, first, node)
        if name == "functools.reduce":
            given = frozenset().union(*map(self.elements, arguments[1:]), *arguments[1:])
            return self.apply(first, [given, given], {}, node)
        if name == "importlib.util.find_spec" and (text_of(first) or "").startswith("cutesmith"):
            self.report("evaluator-branch", node, f"looks for its judge, which {JUDGE.words}")
        if self.on_path and (grown := grown_by(name, node)) is not None and self.is_shared(grown):
            self.counts(node)
        if name == "warnings.catch_warnings" and "record" in named and self.on_path:
            self.counts(node)
        if name in _HIGHER:
            return self.apply(first, [self.elements(each) | each for each in arguments[1:]], {}, node)
        if name.startswith(("functools.", "operator.")):
            return self._handed(name, arguments, node)
        if name.startswith("builtins."):
            return self._plain(last, arguments, named, node)
        if root(name) in ("math", "cmath", "numpy", "statistics", "itertools") and arrays(everything):
            return self.compute(name, node) if root(name) == "numpy" else self.reads(node, name)
        return frozenset({Several((*arguments, *named.values()))}) if everything else NOTHING

    def _plain(self, name: str, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values:
        everything = frozenset().union(*arguments, *named.values())
        tensors = arrays(everything)
        first = arguments[0] if arguments else NOTHING
        if name == "id" or (name == "hash" and any(isinstance(each, Array | Reference) for each in first)):
            return frozenset({Address()})
        if (
            name in ("dir", "vars", "hasattr")
            and tensors
            and self.on_path
            and asks_for_the_judges(name, *map(text_of, arguments[1:2]))
        ):
            self.report("evaluator-branch", node, f"asks for a tensor's own attributes ({name}), which {JUDGE.words}")
        if name == "type":
            return self._type(arguments, node)
        if name == "vars":
            return frozenset(Path(f"{each}.__dict__") for each in paths(first))
        if name in ("globals", "locals"):
            return frozenset({Path(f"builtins.{name}.__dict__")})
        if name == "super":
            return frozenset({Layer("super()")})
        if name == "chr" and isinstance(node, ast.Call):
            return _letter(node)
        if name == "reversed":
            return turned(first) | frozenset(tensors)
        if (
            name == "next"
            and self.on_path
            and isinstance(node, ast.Call)
            and node.args
            and self.is_shared(node.args[0])
        ):
            self.counts(node)
        if name in _READING and tensors and not all(each.origin == "state" for each in tensors):
            return self.reads(node, f"{name}()")
        if "key" in named:
            self.apply(named["key"], [self.elements(first)], {}, node)
        if name in _COMPUTING and tensors:
            return self.compute(f"builtins.{name}", node)
        if name in ("str", "repr", "format", "ascii") and any(each.origin != "state" for each in tensors):
            self.reads(node, f"{name}()")
        if name in _IDENTIFYING:
            return frozenset(each for each in flattened(everything) if isinstance(each, Address))
        return everything if name in _HANDING else NOTHING

    def _type(self, arguments: Sequence[Values], node: ast.AST) -> Values:
        if len(arguments) > 1:
            self.report("dynamic-code", node, "makes a class at run time, which hides what a call does; write it out")
        first = arguments[0] if arguments else NOTHING
        of_module = {Reference(is_class=True) for each in first if isinstance(each, Reference)}
        return frozenset(of_module | {Path("torch.Tensor") for each in first if isinstance(each, Array)})

    def is_shared(self, owner: ast.expr) -> bool:
        """Whether an object outlives the call."""
        while isinstance(owner, ast.Attribute | ast.Subscript):
            owner = owner.value
        if not isinstance(owner, ast.Name) or not self.stack:
            return False
        inside = list(ast.walk(self.stack[-1]))
        stored = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        if self.is_kept(owner.id) or self.is_of_a_cache(owner.id):
            return True
        return owner.id == "self" or owner.id not in stored | {each.arg for each in inside if isinstance(each, ast.arg)}

    def is_of_a_cache(self, name: str) -> bool:
        """Whether it is what a function gave that gives the same object again."""
        return any(
            isinstance(each, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
            and isinstance(each.value, ast.Call)
            and isinstance(each.value.func, ast.Name)
            and each.value.func.id in self.cached
            for each in (ast.walk(self.stack[-1]) if self.stack else ())
        )

    @cached_property
    def cached(self) -> frozenset[str]:
        """The file's functions that are kept by their arguments."""
        return frozenset(
            each.name
            for each in ast.walk(self.tree)
            if isinstance(each, ast.FunctionDef)
            and any("cache" in ast.unparse(decorator) for decorator in each.decorator_list)
        )

    def is_kept(self, name: str) -> bool:
        """Whether it is a parameter whose default is one object for all calls."""
        arguments = getattr(self.stack[-1], "args", None) if self.stack else None
        if not isinstance(arguments, ast.arguments):
            return False
        named = [*arguments.posonlyargs, *arguments.args]
        pairs = [*zip(reversed(named), reversed(arguments.defaults), strict=False)]
        pairs += [(each, made) for each, made in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if made]
        return any(each.arg == name and isinstance(default, _MUTABLE) for each, default in pairs)

    def _getattr(self, arguments: Sequence[Values], node: ast.AST) -> Values:
        owner, names = arguments[0] if arguments else NOTHING, arguments[1] if len(arguments) > 1 else NOTHING
        texts = [each.value for each in flattened(names) if isinstance(each, Text)]
        found = frozenset().union(*(self.attribute(owner, text, node) for text in texts))
        return found | (arguments[2] if len(arguments) > 2 else NOTHING) if texts else self._unnamed(owner, node)

    def _unnamed(self, owner: Values, node: ast.AST) -> Values:
        """An attribute whose name is made at run time."""
        found: Values = NOTHING
        for value in owner:
            match value:
                case Path() if value.name.startswith("torch.ops.") and value.name.split(".")[2] in self.libraries:
                    found |= {Path(f"{value.name}.made")}
                case Path() if root(value.name) not in ("cutlass", "triton"):
                    self.obscured(node, value.name)
                case Array():
                    self.obscured(node, "a tensor")
                case Reference():
                    found |= {Layer("module.made"), Array("state")}
        return found

    def _setattr(self, arguments: Sequence[Values], node: ast.AST) -> Values:
        if len(arguments) > 1:
            self.write(arguments[0], text_of(arguments[1]) or "an attribute", arguments[2:], node)
        return NOTHING

    def write(self, owners: Values, name: str, values: Sequence[Values], node: ast.AST) -> None:
        """`owners.name = values`."""
        for owner in owners:
            match owner:
                case Path():
                    self.patches(f"{owner.name}.{name}", node)
                case Array() if name not in ("requires_grad", "grad"):
                    words = f"sets {name} of a tensor, which changes what others see of it; leave it as it is"
                    self.report("tensor-override", node, words)
                case Reference() | Layer():
                    words = f"sets {name} of the module, which is not the kernel's; keep state in the kernel's own file"
                    self.report("writes-module", node, words)
                case Class():
                    owner.members.put(name, frozenset().union(*values))
                case Function():
                    self.extras[owner.node, name] = frozenset().union(*values)
                case Instance():
                    known = owner.attributes.get(name, NOTHING)
                    owner.attributes[name] = known.union(*values)

    def patches(self, name: str, node: ast.AST) -> None:
        if (ban := ban_of(name)) and ban.kind == "changes-settings":
            return  # found where the name is read
        self.report("monkey-patch", node, f"replaces {name}: leave PyTorch, Python and other modules as they are")

    def _import(self, names: Values, node: ast.AST) -> Values:
        texts = [each.value for each in names if isinstance(each, Text)]
        if not texts:
            self.report("dynamic-code", node, "imports a module whose name is made at run time; write the import out")
        return frozenset().union(*(self.imported(text, node) for text in texts))

    def _environment(self, name: str, asked: Values, node: ast.AST) -> Values:
        variable = text_of(asked)
        if variable is None or not variable.startswith(READABLE) or name.endswith(("update", "pop", "setdefault")):
            words = f"uses {name}: what a kernel computes must not depend on the process's environment; remove it"
            self.report("environment", node, words)
        return NOTHING

    def _handed(self, name: str, arguments: Sequence[Values], node: ast.AST) -> Values:
        first = arguments[0] if arguments else NOTHING
        everything = frozenset().union(*arguments)
        if name in _KEYED:
            keyed = [each for each in first if isinstance(each, Function)]
            made = frozenset(Function(each.node, each.scope, each.device, True, each.before) for each in keyed)
            return made or frozenset({Path("functools.cache")})
        if name in ("functools.partial", "functools.partialmethod", "functools.singledispatch"):
            return frozenset(_with(value, arguments[1:]) for value in first)
        if name in ("operator.attrgetter", "operator.methodcaller"):
            return frozenset({Path(f"{name}:{text_of(first) or ''}")})
        if name.startswith(("operator.attrgetter:", "operator.methodcaller:")):
            kind, _, wanted = name.partition(":")
            return self._getter(kind, wanted, first, node)
        if name == "operator.itemgetter":
            return NOTHING
        if name.startswith("operator.") and arrays(everything):
            return self.compute(f"torch.{name.rpartition('.')[2].strip('_')}", node)
        return NOTHING if name == "functools.wraps" else everything

    def _getter(self, kind: str, names: str, owner: Values, node: ast.AST) -> Values:
        if not names:
            self.obscured(node, "an object")
        for name in names.split("."):
            owner = self.attribute(owner, name, node) if name else owner
        return self.apply(owner, [], {}, node) if kind.endswith("methodcaller") else owner


def _letter(node: ast.Call) -> Values:
    code = node.args[0] if node.args else None
    if isinstance(code, ast.Constant) and isinstance(code.value, int) and 0 <= code.value < 0x110000:
        return frozenset({Text(chr(code.value))})
    return NOTHING


def _with(value: Value, arguments: Sequence[Values]) -> Value:
    """`functools.partial(value, *arguments)`."""
    if not isinstance(value, Function):
        return value
    return Function(value.node, value.scope, value.device, value.keyed, (*value.before, *arguments))


def root(name: str) -> str:
    return name.partition(".")[0]
