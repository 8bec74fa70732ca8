"""Norms whose parameters belong to channels, the second dimension: batch and group norm, and instance norm by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cutesmith_evaluator.types import Arg, Node, Ref

from .contract import Unsupported
from .ir import Expr
from .space import Index, unravel
from .statistics import normalized
from .views import integer, source

if TYPE_CHECKING:
    from .lowering import Lowerer

Emit = Callable[["Lowerer", Node, int, tuple[Index, ...]], Expr]
Shaped = tuple[tuple[int, ...], tuple[int, ...]]  # a shape, and the dims of it that are reduced


def _batch_shape(node: Node, shape: tuple[int, ...]) -> Shaped:
    """All but the channels; without dims of size 1, so that an instance norm's rows come as they lie in memory."""
    return shape, tuple(d for d, n in enumerate(shape) if d != 1 and n > 1)


def _group_shape(node: Node, shape: tuple[int, ...]) -> Shaped:
    groups = integer(node, 1)
    grouped = (shape[0], groups, shape[1] // groups, *shape[2:])
    return grouped, tuple(range(2, len(grouped)))


def _batch_norm(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    """By the batch's own statistics; those it also returns are not covered."""
    if output:
        raise Unsupported(f"no recipe covers the statistics that {node.op} returns", line=node.line)
    weight, bias, _, _, eps = node.args[1:6]
    shape, reduced = _batch_shape(node, lowerer.spec(source(node)).shape)
    _check(lowerer, node, tuple(shape[d] for d in reduced), tuple(index[d] for d in reduced), index[1:2])
    x = lowerer.value(source(node), index)
    return _affine(lowerer, index[1], normalized(lowerer, x, _number(eps)), weight, bias)


def _group_norm(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    weight, bias, eps = (*node.args[2:5], *(None,) * (5 - len(node.args)))[:3]
    shape, reduced = _group_shape(node, lowerer.spec(source(node)).shape)
    group, member = unravel(lowerer.space, lowerer.space.fix(index[1], lowerer.fixed), shape[1:3])
    _check(lowerer, node, tuple(shape[d] for d in reduced), (member, *index[2:]), (index[0], group))
    x = lowerer.value(source(node), index)
    return _affine(lowerer, index[1], normalized(lowerer, x, 1e-5 if eps is None else _number(eps)), weight, bias)


def _check(
    lowerer: Lowerer, node: Node, sizes: tuple[int, ...], columns: tuple[Index, ...], rows: tuple[Index, ...]
) -> None:
    """That the element asked for is at the space's own row and column, so that its row is the one to reduce."""
    if sizes != lowerer.columns:
        raise Unsupported(f"no recipe covers {node.op} next to a reduction over other dimensions", line=node.line)
    in_place = all(lowerer.space.fix(i, lowerer.fixed) == lowerer.column_index(d) for d, i in enumerate(columns))
    if not in_place or not all(lowerer.is_row_index(i) for i in rows):
        raise Unsupported(f"no recipe covers a rearranged result of {node.op}", line=node.line)


def _batch_norm_inference(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    """(x - mean) * (rsqrt(variance + eps) * weight) + bias, by the running statistics: no reduction."""
    weight, bias, mean, variance, _, eps = node.args[1:7]
    if output or not isinstance(mean, Ref) or not isinstance(variance, Ref):
        raise Unsupported(f"no recipe covers the statistics that {node.op} returns", line=node.line)
    b = lowerer.builder
    x = lowerer.value(source(node), index)
    scale = b.op("rsqrt", b.op("add", lowerer.value(variance, index[1:2]), b.const(_number(eps))))
    centred = b.op("sub", x, lowerer.value(mean, index[1:2]))
    if isinstance(weight, Ref):
        scale = b.op("mul", scale, lowerer.value(weight, index[1:2]))
    return _affine(lowerer, index[1], b.op("mul", centred, scale), None, bias)


def _affine(lowerer: Lowerer, channel: Index, x: Expr, weight: Arg, bias: Arg) -> Expr:
    b = lowerer.builder
    if isinstance(weight, Ref):
        x = b.op("mul", x, lowerer.value(weight, (channel,)))
    if isinstance(bias, Ref):
        x = b.op("add", x, lowerer.value(bias, (channel,)))
    return x


def _number(value: Arg) -> float:
    assert isinstance(value, int | float)
    return float(value)


CHANNEL_SHAPES: dict[str, Callable[[Node, tuple[int, ...]], Shaped]] = {
    "_native_batch_norm_legit": _batch_shape,
    "group_norm": _group_shape,
}
CHANNEL_NORMS: dict[str, Emit] = {"_native_batch_norm_legit": _batch_norm, "group_norm": _group_norm}
CHANNEL_OPS: dict[str, Emit] = {"_native_batch_norm_legit_no_training": _batch_norm_inference}
