"""What statements do. Branches are all taken, loops once or twice; names keep all that they may be."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cutesmith_evaluator.guards.calls import Calls
from cutesmith_evaluator.guards.forbidden import HOOKS
from cutesmith_evaluator.guards.scripts import is_script
from cutesmith_evaluator.guards.tallies import goes_on, is_new, of_itself, spends
from cutesmith_evaluator.guards.values import (
    NOTHING,
    Array,
    Class,
    Function,
    Layer,
    Path,
    Scope,
    Several,
    Values,
    arrays,
    flattened,
    paths,
)

_TENSOR_CLASSES = ("torch.Tensor", "torch._C.TensorBase", "torch.nn.Parameter", "torch.nn.parameter.Parameter")
_WIDE = ("Exception", "RuntimeError", "BaseException", "DSLRuntimeError")
_TRANSPARENT = ("contextlib.", "dataclasses.", "typing.", "abc.", "enum.")  # decorators that keep what is called
_KEPT = (".staticmethod", ".classmethod", ".property", ".cached_property", ".wraps")
_DEVICE = ("cutlass.cute.kernel", "cutlass.cute.jit", "triton.jit", "cutlass.jit", "cutlass.kernel")


class Statements(Calls):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.pending: list[tuple[Function, Values]] = []  # bodies that nothing has called yet, with their self

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> Values:
        """What the body returns."""
        returned: Values = NOTHING
        for statement in body:
            returned |= self._statement(statement, scope)
        return returned

    def _statement(self, node: ast.stmt, scope: Scope) -> Values:
        match node:
            case ast.Return():
                return self.evaluate(node.value, scope) if node.value else NOTHING
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope.put(node.name, self._define(node, scope))
            case ast.ClassDef():
                scope.put(node.name, frozenset({self._class(node, scope)}))
            case ast.Import() | ast.ImportFrom():
                self._imports(node, scope)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._assignment(node, scope)
            case ast.Global() | ast.Nonlocal():
                scope.shared |= set(node.names)
            case ast.Delete():
                for target in node.targets:
                    if self.on_path and spends(target) and not self._is_local(target, scope):
                        self.counts(node)
                    self.assign(target, NOTHING, scope)
            case ast.Try() | ast.TryStar():
                return self._try(node, scope)
            case ast.If() | ast.While() | ast.For() | ast.AsyncFor() | ast.With() | ast.AsyncWith() | ast.Match():
                return self._compound(node, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.evaluate(child, scope)
        return NOTHING

    def _compound(self, node: ast.stmt, scope: Scope) -> Values:
        match node:
            case ast.If() if is_script(node.test, self.tree) and scope.parent is None:
                return self.run(node.orelse, scope)
            case ast.If():
                self.condition(node.test, scope)
                return self.run(node.body, scope) | self.run(node.orelse, scope)
            case ast.While():
                self.condition(node.test, scope)
                return self.run(node.body, scope) | self.run(node.orelse, scope)
            case ast.For() | ast.AsyncFor():
                if self.on_path and not isinstance(node.target, ast.Name | ast.Tuple | ast.List):
                    self.counts(node)  # a place that outlives the loop
                self.assign(node.target, self.elements(self.evaluate(node.iter, scope)), scope)
                return self.run(node.body, scope) | self.run(node.body, scope) | self.run(node.orelse, scope)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    values = self.evaluate(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, values, scope)
                return self._within(node, scope)
            case ast.Match():
                self._matched(node, self.evaluate(node.subject, scope), scope)
                return frozenset().union(*(self.run(case.body, scope) for case in node.cases))
        return NOTHING

    def _matched(self, node: ast.Match, subject: Values, scope: Scope) -> None:
        """`case Module(forward=f)` reads an attribute."""
        for pattern in (each for case in node.cases for each in ast.walk(case.pattern)):
            if isinstance(pattern, ast.MatchClass):
                for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                    found = self.attribute(subject, name, pattern)
                    if isinstance(inner, ast.MatchAs) and inner.name is not None:
                        scope.put(inner.name, found)

    def _within(self, node: ast.With | ast.AsyncWith, scope: Scope) -> Values:
        """The body; `contextlib.suppress` around a launch hides that the kernel failed."""
        launched, self.launches = self.launches, False
        returned = self.run(node.body, scope)
        if self.launches and any("suppress(" in ast.unparse(item.context_expr) for item in node.items):
            self._falls_back(node)
        self.launches = self.launches or launched
        return returned

    def _falls_back(self, node: ast.AST) -> None:
        words = "goes on where the kernel failed: a failure must be seen; let the exception out"
        self.report("silent-fallback", node, words)

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope) -> Values:
        launched, self.launches = self.launches, False
        returned = self.run(node.body, scope)
        in_body, self.launches = self.launches, launched or self.launches
        for handler in node.handlers:
            returned |= self._handler(handler, scope, in_body)
        if in_body and any(isinstance(each, ast.Return) for part in node.finalbody for each in ast.walk(part)):
            self._falls_back(node.finalbody[0])
        return returned | self.run(node.orelse, scope) | self.run(node.finalbody, scope)

    def _handler(self, handler: ast.ExceptHandler, scope: Scope, launches: bool) -> Values:
        """Where the body launches, a handler that goes on without a launch hides that the kernel failed."""
        caught = self.evaluate(handler.type, scope) if handler.type is not None else NOTHING
        if handler.name:
            scope.put(handler.name, frozenset({Layer("exception")}))
        before, self.launches = self.launches, False
        self.handlers += self.on_path
        returned = self.run(handler.body, scope)
        self.handlers -= self.on_path
        hides = not self.launches and not any(isinstance(each, ast.Raise) for each in ast.walk(handler))
        wide = handler.type is None or any(name.endswith(_WIDE) for name in paths(flattened(caught)))
        if self.on_path and hides and (arrays(returned) or (launches and wide)):
            self._falls_back(handler)
        self.launches = before or self.launches
        return returned

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Values:
        values: Values = frozenset({Function(node, scope)})
        for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each)):
            self.evaluate(default, scope)
        for decorator in reversed(node.decorator_list):
            values = self._decorated(decorator, values, scope)
        if node.name in HOOKS:
            self.report("monkey-patch", node, f"defines {node.name}, which changes what PyTorch and Python do")
        self.pending += [(value, NOTHING) for value in values if isinstance(value, Function) and value.node is node]
        return values

    def _decorated(self, decorator: ast.expr, values: Values, scope: Scope) -> Values:
        by = self.evaluate(decorator, scope)
        functions = [value for value in values if isinstance(value, Function)]
        if any(name in _DEVICE or name.startswith("cutlass.cute.") for name in paths(by)):
            return frozenset(Function(each.node, each.scope, device=True) for each in functions)
        if any(name.startswith("torch.library.") for name in paths(by)):
            self.roots += functions
            return NOTHING
        if any(name.startswith(_TRANSPARENT) or name.endswith(_KEPT) for name in paths(by)):
            return values
        return self.apply(by, [values], {}, decorator) or values

    def _class(self, node: ast.ClassDef, scope: Scope) -> Class:
        derived = frozenset().union(*(self.evaluate(base, scope) for base in node.bases))
        bases, parents = tuple(paths(derived)), tuple(each for each in derived if isinstance(each, Class))
        if any(each.arg == "metaclass" and not ast.unparse(each.value).endswith("Meta") for each in node.keywords):
            self.report("dynamic-code", node, "makes classes in a way of its own, which hides what a call does; do not")
        members = Scope(scope, is_class=True)
        if any(base in _TENSOR_CLASSES for base in bases):
            words = "makes a kind of tensor of its own, which can put work off or look different; return plain tensors"
            self.report("tensor-subclass", node, words)
        made = Class(node, scope, members, bases, parents)
        waiting = len(self.pending)
        self.run(node.body, members)
        self.pending[waiting:] = [(function, frozenset({made})) for function, _ in self.pending[waiting:]]
        return made

    def _imports(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                values = self.imported(alias.name, node)
                name = alias.asname or alias.name.partition(".")[0]
                scope.put(name, values if alias.asname else frozenset({Path(name)}))
            return
        source = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*" and not source.startswith("cutlass"):
                self.report("star-import", node, f"imports everything from {source}; name what is used")
            elif alias.name != "*":
                scope.put(alias.asname or alias.name, self.imported(f"{source}.{alias.name}", node))

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope) -> None:
        values = self.evaluate(node.value, scope) if node.value is not None else NOTHING
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if isinstance(node, ast.AugAssign):
            values = self._augmented(node, values, scope)
        elif self.on_path and any(self._counts_up(target, node.value, scope) for target in targets):
            self.counts(node)
        for target in targets:
            self.assign(target, values, scope)

    def _augmented(self, node: ast.AugAssign, values: Values, scope: Scope) -> Values:
        target = node.target
        old = scope.find(target.id) or NOTHING if isinstance(target, ast.Name) else NOTHING
        if not isinstance(target, ast.Name):
            owner = self.evaluate(target.value, scope)
            if any(isinstance(value, Array) for value in owner):
                return self.compute("torch.add", node)
        if self.on_path and not arrays(old) and not self._is_local(target, scope):
            self.counts(node)
        return self.operated(node.op, old, values, node)

    def _is_local(self, target: ast.expr, scope: Scope) -> bool:
        while isinstance(target, ast.Subscript | ast.Attribute):
            if isinstance(target, ast.Attribute):
                return False
            target = target.value
        if not isinstance(target, ast.Name) or not scope.holds(target.id):
            return False
        return not self.is_kept(target.id) and not self.is_of_a_cache(target.id)

    def _counts_up(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> bool:
        """`N = N + 1` of a name that outlives the call."""
        if isinstance(target, ast.Tuple | ast.List):
            kept = [each for each in target.elts if not self._is_local(each, scope)]
            return bool(kept) and goes_on(target, value)
        if self._is_local(target, scope):
            return False
        if isinstance(target, ast.Name) and target.id not in scope.shared:
            return False
        return of_itself(target, value, self.stack[-1] if self.stack else None)

    def assign(self, target: ast.expr, values: Values, scope: Scope) -> None:
        match target:
            case ast.Name():
                scope.put(target.id, values)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, values, scope)
            case ast.Starred():
                self.assign(target.value, values, scope)
            case ast.Attribute():
                self.write(self.evaluate(target.value, scope), target.attr, [values], target)
            case ast.Subscript():
                self._store(target, values, scope)

    def _unpack(self, targets: list[ast.expr], values: Values, scope: Scope) -> None:
        whole = frozenset(value for value in values if isinstance(value, Array))
        several = [value for value in values if isinstance(value, Several)]
        exact = [value for value in several if len(value.items) == len(targets)]
        for place, target in enumerate(targets):
            items = [value.items[place] for value in exact] or [item for value in several for item in value.items]
            self.assign(target, whole.union(*items), scope)

    def _store(self, target: ast.Subscript, values: Values, scope: Scope) -> None:
        base, index = self.evaluate(target.value, scope), self.evaluate(target.slice, scope)
        for value in base:
            if isinstance(value, Path):
                self._store_in_path(value.name, target)
            elif isinstance(value, Layer) and value.name.startswith("module."):
                self.write(frozenset({value}), "a part", [values], target)
            elif isinstance(value, Array) and value.origin != "own":
                self.report("writes-input", target, "writes to its inputs or the module's state; write to a new tensor")
        if not any(isinstance(value, Array) for value in base):
            self.key(index, target)
            if self.on_path and is_new(target.slice, self.tree) and self.is_shared(target.value):
                self.counts(target)
            if isinstance(target.value, ast.Name):
                scope.put(target.value.id, frozenset({Several((values,))}) if values else NOTHING)

    def _store_in_path(self, name: str, node: ast.AST) -> None:
        if name == "os.environ":
            self.report("environment", node, "changes the process's environment, which is not the kernel's; remove it")
        else:
            self.patches(name.removesuffix(".__dict__"), node)

    def scan(self) -> None:
        """Runs every body that nothing has called, so that what it uses is seen."""
        while self.pending:
            function, owner = self.pending.pop()
            first: list[Values] = []
            for value in owner:
                if isinstance(value, Class):
                    self.instance(value, [], {}, value.node)
                    first = [frozenset({self.instances[value]})]
            self.enter(function, first, {})
