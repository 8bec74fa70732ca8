"""State that a call changes by what it was: a tally of calls, however it is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_GROWING = ("append", "appendleft", "extend", "insert", "__next__", "send")
_TURNING = ("rotate", "popleft", "reverse", "sort")
_KEEPING = ("update", "add", "set", "__setitem__", "setdefault")
_SUMS = ("__add__", "__radd__", "__sub__", "__mul__", "__xor__", "__or__", "__invert__", "__neg__", "__mod__")


def goes_on(target: ast.expr, value: ast.expr | None) -> bool:
    """`target = value` where the value is made of what the target was: N = 1 + N, TURN = not TURN, A, B = B, A."""
    if value is None:
        return False
    if isinstance(target, ast.Tuple | ast.List):
        name = {root_of(each) for each in target.elts if isinstance(each, ast.Subscript | ast.Attribute)}
        return isinstance(value, ast.Tuple) and any(_mentions(each, one) for each in value.elts for one in name)
    return any(_mentions(each, root_of(target)) for each in _sums(value))


def of_itself(target: ast.expr, value: ast.expr | None) -> bool:
    """The same for `self.n = 1 + self.n`, where other attributes may be meant."""
    if root_of(target) != "self":
        return goes_on(target, value)
    wanted = ast.unparse(target)
    return any(ast.unparse(part) == wanted for each in _sums(value) for part in ast.walk(each) if part is not each)


def moves_on(node: ast.Call) -> bool:
    """Whether a method changes its owner in every call: a list grows, a queue turns, a budget is spent."""
    assert isinstance(node.func, ast.Attribute)
    name, owner = node.func.attr, root_of(node.func.value)
    if name in _GROWING or name in _TURNING:
        return True
    if name == "pop":
        return not node.args or (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, int))
    given = [*node.args, *(each.value for each in node.keywords)]
    return name in _KEEPING and any(_mentions(each, owner) for one in given for each in (*_sums(one), *_lengths(one)))


def spends(target: ast.expr) -> bool:
    """`del BUDGET[0]`"""
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant | ast.UnaryOp)


def root_of(node: ast.expr) -> str | None:
    """The name that an attribute or an element is of."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _sums(value: ast.expr | None) -> Iterator[ast.expr]:
    """What works something out; `known or made` does not."""
    for each in ast.walk(value) if value is not None else ():
        is_sum = isinstance(each, ast.BinOp | ast.JoinedStr | ast.UnaryOp)
        if is_sum or (isinstance(each, ast.Call) and _is_sum(each.func)):
            yield each


def _is_sum(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in _SUMS


def _lengths(value: ast.expr) -> Iterator[ast.expr]:
    for each in ast.walk(value):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "len":
            yield each


def _mentions(value: ast.expr, name: str | None) -> bool:
    return name is not None and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))
