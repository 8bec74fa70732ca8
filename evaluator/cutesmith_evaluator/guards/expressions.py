"""What expressions give."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from cutesmith_evaluator.guards.base import Base
from cutesmith_evaluator.guards.folding import joined, percent
from cutesmith_evaluator.guards.values import (
    NOTHING,
    Address,
    Array,
    Function,
    Layer,
    Path,
    Reference,
    Scope,
    Several,
    Text,
    Values,
    arrays,
    flattened,
    text_of,
)

OPERATORS = {
    ast.Add: "torch.add", ast.Sub: "torch.sub", ast.Mult: "torch.mul", ast.Div: "torch.div", ast.Mod: "torch.remainder",
    ast.MatMult: "torch.matmul", ast.Pow: "torch.pow", ast.FloorDiv: "torch.floor_divide", ast.USub: "torch.neg",
    ast.BitAnd: "torch.bitwise_and", ast.BitOr: "torch.bitwise_or", ast.BitXor: "torch.bitwise_xor",
    ast.Invert: "torch.bitwise_not", ast.LShift: "torch.bitwise_left_shift", ast.RShift: "torch.bitwise_right_shift",
}  # fmt: skip
_OWN_NAMES = ("__name__", "__file__", "__spec__")


class Expressions(Base):
    def evaluate(self, node: ast.expr, scope: Scope) -> Values:
        handler: Callable[[ast.expr, Scope], Values] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        return handler(node, scope) if handler else self._parts(node, scope)

    def _parts(self, node: ast.AST, scope: Scope) -> Values:
        """Everything inside, for what it does; what comes of it is not known."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child, scope)
        return NOTHING

    def _constant(self, node: ast.Constant, scope: Scope) -> Values:
        return frozenset({Text(node.value)}) if isinstance(node.value, str) else NOTHING

    def _name(self, node: ast.Name, scope: Scope) -> Values:
        found = scope.find(node.id)
        if node.id in ("__builtins__", "__loader__"):
            self.report("introspection", node, f"reads {node.id}, which leads into the interpreter; remove it")
        if node.id in _OWN_NAMES and self.on_path:
            self.evaluator_branch(node)
        if found is None and hasattr(builtins, node.id):
            return self.touch(f"builtins.{node.id}", node)
        return found or NOTHING

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        return self.attribute(self.evaluate(node.value, scope), node.attr, node)

    def _call(self, node: ast.Call, scope: Scope) -> Values:
        return self.call(node, scope)

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Values:
        values = self.evaluate(node.value, scope)
        self.assign(node.target, values, scope)
        return values

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Values:
        return frozenset({Function(node, scope)})

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Values:
        self.condition(node.test, scope)
        return self.evaluate(node.body, scope) | self.evaluate(node.orelse, scope)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Values:
        return frozenset().union(*(self.evaluate(part, scope) for part in node.values))

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Values:
        return self._several(node.elts, scope)

    def _list(self, node: ast.List, scope: Scope) -> Values:
        return self._several(node.elts, scope)

    def _set(self, node: ast.Set, scope: Scope) -> Values:
        return self._several(node.elts, scope)

    def _dict(self, node: ast.Dict, scope: Scope) -> Values:
        for each in node.keys:
            if each is not None and self.on_path:
                self.key(self.evaluate(each, scope), node)
        return self._several(node.values, scope)

    def _several(self, nodes: list[ast.expr], scope: Scope) -> Values:
        return frozenset({Several(tuple(self.evaluate(each, scope) for each in nodes))})

    def _starred(self, node: ast.Starred, scope: Scope) -> Values:
        return self.elements(self.evaluate(node.value, scope))

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Values:
        inner = self._comprehended(node.generators, scope)
        return frozenset({Several((self.evaluate(node.elt, inner),))})

    _setcomp = _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Values:
        inner = self._comprehended(node.generators, scope)
        self.evaluate(node.key, inner)
        return frozenset({Several((self.evaluate(node.value, inner),))})

    def _comprehended(self, generators: list[ast.comprehension], scope: Scope) -> Scope:
        inner = Scope(scope)
        for each in generators:
            self.assign(each.target, self.elements(self.evaluate(each.iter, inner)), inner)
            for test in each.ifs:
                self.condition(test, inner)
        return inner

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Values:
        nodes = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        parts = [self.evaluate(part, scope) for part in nodes]
        if any(isinstance(value, Array) and value.origin != "state" for part in parts for value in part):
            self.reads(node, "f-string")
        return joined(parts) or frozenset(
            value for part in parts for value in flattened(part) if isinstance(value, Address)
        )

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Values:
        values = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Not):
            self._truth(values, node)
            return NOTHING
        return self.compute(OPERATORS.get(type(node.op), "torch.positive"), node) if arrays(values) else values

    def _binop(self, node: ast.BinOp, scope: Scope) -> Values:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        text = text_of(left)
        if text is not None:
            return joined([left, right]) if isinstance(node.op, ast.Add) else percent(text, right)
        return self.operated(node.op, left, right, node)

    def operated(self, op: ast.operator, left: Values, right: Values, node: ast.AST) -> Values:
        joined = left | right
        if any(isinstance(value, Array) for value in joined):
            return self.compute(OPERATORS.get(type(op), "torch.add"), node)
        if isinstance(op, ast.Mod | ast.BitAnd):  # how a pointer is aligned is no identity
            joined = frozenset(value for value in flattened(joined) if not isinstance(value, Address))
        return frozenset(value for value in joined if isinstance(value, Several | Address))

    def _compare(self, node: ast.Compare, scope: Scope) -> Values:
        nodes = [node.left, *node.comparators]
        values = [self.evaluate(each, scope) for each in nodes]
        for place, op in enumerate(node.ops):
            self._compared(op, nodes[place : place + 2], values[place : place + 2], node)
        return NOTHING

    def _compared(self, op: ast.cmpop, nodes: list[ast.expr], values: list[Values], node: ast.Compare) -> None:
        plain = any(isinstance(each, ast.Constant) and each.value in (None, 0, True, False) for each in nodes)
        if isinstance(op, ast.Is | ast.IsNot):
            kept = any(isinstance(each, ast.Attribute | ast.Subscript) for each in nodes)
            asks = self.on_path or getattr(self.stack[-1] if self.stack else None, "name", "") == "__eq__"
            if kept and not plain and asks and any(isinstance(v, Array) for pair in values for v in pair):
                self.key(frozenset().union(*values), node)
        elif isinstance(op, ast.In | ast.NotIn):
            self.key(values[0], node)
        elif any(isinstance(value, Address) for pair in values for value in flattened(pair)):
            if not plain:
                self.key(frozenset({Address()}), node)
        elif any(isinstance(value, Array) for pair in values for value in pair):
            self.compute("torch.eq", node)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Values:
        base, index = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        text = text_of(base)
        if text is not None:
            return _sliced(text, node.slice)
        return self.item(base, index, node)

    def item(self, base: Values, index: Values, node: ast.AST) -> Values:
        if any(isinstance(value, Array) for value in base):
            if arrays(index):
                return self.compute("torch.Tensor.__getitem__", node)
            return frozenset(value for value in base if isinstance(value, Array))
        found: Values = NOTHING
        for value in base:
            if isinstance(value, Several):
                found |= self._picked(value, node)
            elif isinstance(value, Layer):
                found |= {value}
            elif isinstance(value, Path) and value.name.endswith(".__dict__"):
                found |= self._from_namespace(value.name.removesuffix(".__dict__"), index, node)
        if index and not any(isinstance(value, Path) for value in base):
            self.key(index, node)
        return found

    def _picked(self, several: Several, node: ast.AST) -> Values:
        place = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
        if isinstance(place, int) and -len(several.items) <= place < len(several.items):
            return several.items[place]
        inside = frozenset().union(*map(flattened, several.items))
        return frozenset().union(*several.items) | frozenset(each for each in inside if not isinstance(each, Array))

    def _from_namespace(self, owner: str, index: Values, node: ast.AST) -> Values:
        texts = [value.value for value in index if isinstance(value, Text)]
        if not texts:
            self.obscured(node, owner)
        return frozenset().union(*(self.attribute(frozenset({Path(owner)}), text, node) for text in texts))

    def elements(self, values: Values) -> Values:
        """What iterating gives."""
        found = frozenset(value for value in values if isinstance(value, Array))
        return found.union(*(item for value in values if isinstance(value, Several) for item in value.items))

    def condition(self, node: ast.expr, scope: Scope) -> None:
        self._truth(self.evaluate(node, scope), node)

    def _truth(self, values: Values, node: ast.AST) -> None:
        if any(isinstance(value, Array) for value in values):
            self.reads(node, "its truth value")

    def evaluator_branch(self, node: ast.AST) -> None:
        words = "asks under which name it runs: it would compute other things for its judge than for its user"
        self.report("evaluator-branch", node, words)

    def counts(self, node: ast.AST) -> None:
        words = "counts its calls: the result must depend on the inputs alone; remove the counter"
        self.report("call-counter", node, words)

    def obscured(self, node: ast.AST, owner: str) -> None:
        words = f"reaches into {owner} by a name that is made at run time; write the name out"
        self.report("obscured-name", node, words)

    def is_reference(self, values: Values) -> bool:
        return any(isinstance(value, Reference) for value in values)


def _sliced(text: str, part: ast.expr) -> Values:
    """The string's slice or letter; where the bounds are no constants, the string itself."""
    try:
        if isinstance(part, ast.Slice):
            bounds = [None if each is None else ast.literal_eval(each) for each in (part.lower, part.upper, part.step)]
            return frozenset({Text(text[slice(*bounds)])})
        return frozenset({Text(text[ast.literal_eval(part)])})
    except (ValueError, TypeError, IndexError):
        return frozenset({Text(text)})
