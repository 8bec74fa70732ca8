"""The kernels' own expression graph: what one element (or one row) of the result is, in fp32 arithmetic.

Index space: a tuple of dimensions, row dimensions first, then the columns that reductions run over. A `Load` is
affine in them. Expressions are hash-consed by `Builder`, so equal ones are one object and are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

ReduceKind = Literal["sum", "prod", "max", "min", "argmax", "argmin"]
PoolKind = Literal["max", "mean", "dot"]
Level = int


@dataclass(frozen=True, eq=False)
class Expr:
    """A value. `level` counts the reductions it waits for; `per_column` says whether it varies along a row."""

    level: Level
    per_column: bool
    boolean: bool


@dataclass(frozen=True, eq=False)
class Const(Expr):
    value: float


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """Element `offset + sum(strides[k] * space[k])` of the graph input `name`.

    `picked`: the size and stride of a dimension along which a `Pick` chooses; the load is then its first element."""

    name: str
    dtype: str
    strides: tuple[int, ...]
    offset: int
    picked: tuple[int, int] | None = None
    windowed: tuple[int, ...] = ()  # strides along a window's dimensions, where it is an element of one


@dataclass(frozen=True, eq=False)
class Op(Expr):
    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Reduce(Expr):
    """`arg` reduced over all columns of a row."""

    kind: ReduceKind
    arg: Expr


@dataclass(frozen=True, eq=False)
class Total(Expr):
    """`arg`, a value of each row, reduced over all rows."""

    kind: ReduceKind
    arg: Expr


@dataclass(frozen=True, eq=False)
class Pick(Expr):
    """The element of `load` at the place that `index`, a value of the row, names along the picked dimension."""

    load: Load
    index: Expr


@dataclass(frozen=True, eq=False)
class Scan(Expr):
    """`arg` accumulated over the columns up to each one; from the last column on where `reverse`."""

    kind: Literal["sum", "prod"]
    arg: Expr
    reverse: bool
    exclusive: bool  # without the column itself


@dataclass(frozen=True)
class WindowDim:
    """One dimension of a window: it starts at offset + sum(coefficient * space[k]) and may reach past the input."""

    terms: tuple[tuple[int, int], ...]  # (factor of the space, coefficient)
    offset: int
    taps: int
    dilation: int
    size: int  # of the input
    stride: int  # between the input's elements
    padding: int


@dataclass(frozen=True, eq=False)
class Pool(Expr):
    """The largest element, the mean or the weighted sum of a window of an input; `load` is the window's plane."""

    kind: PoolKind
    load: Load
    terms: tuple[tuple[int, int], ...]  # where the plane begins, as a window's dimension
    offset: int
    windows: tuple[WindowDim, ...]
    whole: bool  # the mean counts the padding
    divisor: int | None
    weight: Load | None = None  # that of the window's first element; the others' follow it
    element: Expr | None = None  # what is taken of each element, where it is not the element itself
    needed: tuple[Load, ...] = ()  # what else `element` needs, the same all over a plane


BOOLEAN_OPS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})


@dataclass
class Builder:
    """Makes expressions, each distinct one once, folding what is constant."""

    column_dims: frozenset[int] = frozenset()
    made: dict[Hashable, Expr] = field(default_factory=dict)

    def const(self, value: float) -> Const:
        value = float(value)
        key = ("const", repr(value))
        return self._once(key, lambda: Const(0, False, False, value))  # type: ignore[return-value]

    def load(
        self,
        name: str,
        dtype: str,
        strides: tuple[int, ...],
        offset: int,
        picked: tuple[int, int] | None = None,
        windowed: tuple[int, ...] = (),
    ) -> Load:
        per_column = any(strides[k] for k in self.column_dims) or bool(windowed)
        key = ("load", name, strides, offset, picked, windowed)
        made = partial(Load, 0, per_column, False, name, dtype, strides, offset, picked, windowed)
        return self._once(key, made)  # type: ignore[return-value]

    def pick(self, load: Load, index: Expr) -> Expr:
        return self._once(("pick", id(load), id(index)), lambda: Pick(index.level, False, False, load, index))

    def reduce(self, kind: ReduceKind, arg: Expr) -> Expr:
        arg = self._counted(arg)
        return self._once(("reduce", kind, id(arg)), lambda: Reduce(arg.level + 1, False, False, kind, arg))

    def total(self, kind: ReduceKind, arg: Expr) -> Expr:
        arg = self._counted(arg)
        return self._once(("total", kind, id(arg)), lambda: Total(arg.level + 1, False, False, kind, arg))

    def _counted(self, arg: Expr) -> Expr:
        """A truth value as 1 or 0."""
        return self.op("where", arg, self.const(1.0), self.const(0.0)) if arg.boolean else arg

    def scan(self, kind: Literal["sum", "prod"], arg: Expr, *, reverse: bool, exclusive: bool) -> Expr:
        key = ("scan", kind, id(arg), reverse, exclusive)
        return self._once(key, lambda: Scan(arg.level + 1, True, False, kind, arg, reverse, exclusive))

    def pool(
        self,
        kind: PoolKind,
        load: Load,
        plane: tuple[tuple[tuple[int, int], ...], int],
        windows: tuple[WindowDim, ...],
        *,
        whole: bool = True,
        divisor: int | None = None,
        weight: Load | None = None,
        element: Expr | None = None,
        needed: tuple[Load, ...] = (),
    ) -> Expr:
        key = ("pool", kind, id(load), plane, windows, whole, divisor, id(weight), id(element))
        made = partial(Pool, 0, True, False, kind, load, *plane, windows, whole, divisor, weight, element, needed)
        return self._once(key, made)

    def op(self, name: str, *args: Expr) -> Expr:
        folded = _fold(self, name, args)
        if folded is not None:
            return folded
        level = max(a.level for a in args)
        per_column = any(a.per_column for a in args)
        boolean = name in BOOLEAN_OPS or (name == "where" and args[1].boolean)
        return self._once((name, *map(id, args)), lambda: Op(level, per_column, boolean, name, args))

    def _once(self, key: Hashable, make) -> Expr:  # noqa: ANN001
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]


def _fold(b: Builder, name: str, args: tuple[Expr, ...]) -> Expr | None:
    """Constants folded, neutral elements dropped, and the few rewrites that both speed up and sharpen."""
    if name in ("add", "sub", "mul", "div", "neg", "pow") and all(isinstance(a, Const) for a in args):
        return _fold_constants(b, name, [a.value for a in args])  # type: ignore[union-attr]
    if name == "not":
        return _fold_not(b, args[0])
    if name == "where" and isinstance(args[0], Op) and args[0].name == "not":
        return b.op("where", args[0].args[0], args[2], args[1])
    if name == "neg" and isinstance(args[0], Op) and args[0].name == "neg":
        return args[0].args[0]
    if len(args) != 2:
        return None
    left, right = args
    if name == "sub" and isinstance(right, Op) and right.name == "neg":
        return b.op("add", left, right.args[0])
    if (
        name in ("add", "mul")
        and isinstance(left, Const)
        and not isinstance(right, Const)
        and left.value == _neutral(name)
    ):
        return right
    if name in ("add", "sub", "mul", "div") and isinstance(right, Const) and right.value == _neutral(name):
        return left
    if name == "add":
        return _fold_one_plus_tanh(b, left, right)
    return _fold_power_of_two(b, left, right) if name == "mul" else None


def _neutral(name: str) -> float:
    return 1.0 if name in ("mul", "div") else 0.0


def _fold_constants(b: Builder, name: str, values: list[float]) -> Expr | None:
    try:
        if name == "neg":
            return b.const(-values[0])
        x, y = values
        result = {"add": x + y, "sub": x - y, "mul": x * y}.get(name)
        if result is None:
            result = x / y if name == "div" else math.pow(x, y)
    except (OverflowError, ZeroDivisionError, ValueError):
        return None
    return b.const(result)


def _fold_not(b: Builder, arg: Expr) -> Expr | None:
    """`not` of an equality is the other one; of an ordering it is not (NaN)."""
    if isinstance(arg, Op) and arg.name in ("eq", "ne"):
        return b.op("ne" if arg.name == "eq" else "eq", *arg.args)
    if isinstance(arg, Op) and arg.name == "not":
        return arg.args[0]
    return None


def _fold_one_plus_tanh(b: Builder, left: Expr, right: Expr) -> Expr | None:
    """1 + tanh(u) = 2 / (1 + exp(-2u)): no cancellation for negative u, and one exponential cheaper."""
    for one, tanh in ((left, right), (right, left)):
        if isinstance(one, Const) and one.value == 1.0 and isinstance(tanh, Op) and tanh.name == "tanh":
            e = b.op("exp", b.op("mul", b.const(-2.0), tanh.args[0]))
            return b.op("div", b.const(2.0), b.op("add", b.const(1.0), e))
    return None


def _fold_power_of_two(b: Builder, left: Expr, right: Expr) -> Expr | None:
    """2^k * (c * x) = (2^k c) * x exactly, short of overflow."""
    for scale, product in ((left, right), (right, left)):
        if not (isinstance(scale, Const) and isinstance(product, Op) and product.name == "mul"):
            continue
        x, factor = product.args if isinstance(product.args[1], Const) else reversed(product.args)
        if isinstance(factor, Const) and abs(math.frexp(scale.value)[0]) == 0.5 and 1e-3 < abs(scale.value) < 1e3:
            return b.op("mul", x, b.const(scale.value * factor.value))
    return None


def walk(roots: tuple[Expr, ...]) -> Iterator[Expr]:
    """Every expression under `roots` once, arguments before users."""
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        e, ready = stack.pop()
        if ready:
            yield e
            continue
        if id(e) in seen:
            continue
        seen.add(id(e))
        stack.append((e, True))
        stack.extend((a, False) for a in reversed(arguments(e)) if id(a) not in seen)


def arguments(e: Expr) -> tuple[Expr, ...]:
    if isinstance(e, Op):
        return e.args
    if isinstance(e, Pool):
        return (e.load, *e.needed) if e.weight is None else (e.load, e.weight)
    if isinstance(e, Pick):
        return (e.load, e.index)
    return (e.arg,) if isinstance(e, Reduce | Scan | Total) else ()
