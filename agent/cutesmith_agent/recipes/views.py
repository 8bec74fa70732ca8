"""View ops, cat and constants: the same element under another index."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cutesmith_evaluator.types import Arg, Node, Ref

from .contract import Unsupported
from .ir import Expr
from .space import Index, Refine, unravel

if TYPE_CHECKING:
    from .lowering import Lowerer

View = Callable[["Lowerer", Node, int, tuple[Index, ...]], Expr]


def source(node: Node) -> Ref:
    first = node.args[0]
    if not isinstance(first, Ref):
        raise Unsupported(f"no recipe covers {node.op} of a list", line=node.line)
    return first


def integer(node: Node, position: int, default: int | None = None) -> int:
    value = node.args[position] if position < len(node.args) else default
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unsupported(f"no recipe covers {node.op} with a size that is not a number", line=node.line)
    return value


def integers(value: Arg) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,)
    assert isinstance(value, tuple)
    return tuple(v for v in value if isinstance(v, int))


def _reshape(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    shape, given = lowerer.spec(source(node)).shape, node.outputs[0].shape
    if [n for n in shape if n > 1] == [n for n in given if n > 1]:
        own = iter(i for i, n in zip(index, given, strict=True) if n > 1)
        return lowerer.value(source(node), tuple(next(own) if n > 1 else Index() for n in shape))
    flat = Index()
    for i, n in zip(index, given, strict=True):
        flat = flat.times(n).add(i)
    return lowerer.value(source(node), unravel(lowerer.space, flat, shape))


def _permute(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    order = [d % len(index) for d in integers(node.args[1])]
    return lowerer.value(source(node), tuple(index[order.index(d)] for d in range(len(index))))


def _transpose(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    swapped = list(index)
    if len(index) > 1:
        a, b = (integer(node, 1), integer(node, 2)) if len(node.args) > 2 else (0, 1)
        swapped[a], swapped[b] = swapped[b], swapped[a]
    return lowerer.value(source(node), tuple(swapped))


def _expand(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    operand = lowerer.operand(source(node), index)
    assert isinstance(operand, Expr)
    return operand


def _repeat(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    """Element `i` of a repeated dimension is element `i % size` of the source's."""
    shape = lowerer.spec(source(node)).shape
    own = index[len(index) - len(shape) :]
    inner = tuple(
        unravel(lowerer.space, lowerer.space.fix(i, lowerer.fixed), (n,))[0] for i, n in zip(own, shape, strict=True)
    )
    return lowerer.value(source(node), inner)


def _flip(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    flipped = {d % len(index) for d in integers(node.args[1])}
    sizes = node.outputs[0].shape
    turned = tuple(i.times(-1).plus(sizes[d] - 1) if d in flipped else i for d, i in enumerate(index))
    return lowerer.value(source(node), turned)


def _slice(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    shape = lowerer.spec(source(node)).shape
    dim = integer(node, 1, 0) % len(shape)
    start = node.args[2] if len(node.args) > 2 else None
    step = integer(node, 4, 1) if len(node.args) > 4 else 1
    first = 0 if start is None else start
    assert isinstance(first, int)
    first = max(first + shape[dim], 0) if first < 0 else min(first, shape[dim])
    moved = tuple(i.times(step).plus(first) if d == dim else i for d, i in enumerate(index))
    return lowerer.value(source(node), moved)


def _select(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    shape = lowerer.spec(source(node)).shape
    dim = integer(node, 1) % len(shape)
    at = integer(node, 2) % shape[dim]
    return lowerer.value(source(node), (*index[:dim], Index(offset=at), *index[dim:]))


def _split(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    dim = integer(node, 2, 0) % len(index)
    start = sum(o.shape[dim] for o in node.outputs[:output])
    moved = tuple(i.plus(start) if d == dim else i for d, i in enumerate(index))
    return lowerer.value(source(node), moved)


def _cat(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    parts = [a for a in node.args[0] if isinstance(a, Ref)] if isinstance(node.args[0], tuple) else []
    dim = integer(node, 1, 0) % len(index)
    at = lowerer.space.fix(index[dim], lowerer.fixed)
    low, high = lowerer.space.span(at)
    start = 0
    for part in parts:
        end = start + lowerer.spec(part).shape[dim]
        if start <= low and high < end:
            moved = tuple(at.plus(-start) if d == dim else i for d, i in enumerate(index))
            return lowerer.value(part, moved)
        if low < end <= high:
            raise _cut(lowerer, node, at, end)
        start = end
    raise Unsupported(f"no recipe covers {node.op} of these shapes", line=node.line)


def _cut(lowerer: Lowerer, node: Node, at: Index, end: int) -> Exception:
    """The factor to cut so that no piece straddles `end`: pieces must be equally wide."""
    for k, c in at.terms:
        size = lowerer.space.factors[k].size
        reach = end - at.offset
        if size * c > reach and reach % c == 0 and size % (reach // c) == 0:
            return Refine(k, reach // c, unroll=True)
        width = math.gcd(reach, size * c)
        if size * c > reach and width % c == 0 and 1 < width // c < size:
            return Refine(k, width // c, unroll=True)
    return Unsupported(f"no recipe covers {node.op} of pieces this unequal", line=node.line)


def _full(lowerer: Lowerer, node: Node, _: int, index: tuple[Index, ...]) -> Expr:
    name = node.op.split(".")[1]
    value: Arg = {"zeros_like": 0.0, "ones_like": 1.0, "zeros": 0.0, "ones": 1.0}.get(name)
    if value is None:
        value = node.args[0] if name == "scalar_tensor" else node.args[1]
    if isinstance(value, bool | int | float):
        return lowerer.builder.const(float(value))
    raise Unsupported(f"no recipe covers {node.op} with a computed value", line=node.line)


VIEWS: dict[str, View] = {
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "view_copy"), _reshape
    ),
    "permute": _permute,
    **dict.fromkeys(("transpose", "t"), _transpose),
    "expand": _expand,
    "repeat": _repeat,
    "flip": _flip,
    "slice": _slice,
    "select": _select,
    **dict.fromkeys(("split", "split_with_sizes", "chunk"), _split),
    "cat": _cat,
    **dict.fromkeys(("full", "full_like", "zeros_like", "ones_like", "zeros", "ones", "scalar_tensor"), _full),
}
