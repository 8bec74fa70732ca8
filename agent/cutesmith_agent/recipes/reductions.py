"""Reductions as row expressions; norms and softmaxes in terms of them. The norms of channels: `channel_norms`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cutesmith_evaluator.types import Arg, Node, Ref

from .channel_norms import CHANNEL_NORMS, CHANNEL_SHAPES
from .contract import Unsupported
from .ir import Expr, ReduceKind
from .scans import SCANS
from .space import Index, is_picked
from .statistics import count_of, mean_of, normalized, variance_of
from .totals import is_over_rows, total
from .views import integers, source

if TYPE_CHECKING:
    from .lowering import Lowerer

Emit = Callable[["Lowerer", Node, int, tuple[Index, ...]], Expr]


def _argument(node: Node, name: str, position: int) -> Arg:
    if name in node.kwargs:
        return node.kwargs[name]
    return node.args[position] if position < len(node.args) else None


# Where each op keeps the dims it reduces.
DIMS: dict[str, Callable[[Node, int], Arg]] = {
    **dict.fromkeys(
        (
            *SCANS,
            "sum",
            "mean",
            "amax",
            "amin",
            "prod",
            "argmax",
            "argmin",
            "max",
            "min",
            "_softmax",
            "_safe_softmax",
            "_log_softmax",
            "var",
        ),
        lambda node, rank: _argument(node, "dim", 1),
    ),
    "linalg_vector_norm": lambda node, rank: _argument(node, "dim", 2),
    **dict.fromkeys(
        ("layer_norm", "rms_norm"),
        lambda node, rank: tuple(range(rank - len(integers(node.args[1])), rank)),
    ),
}


def reduced_dims(node: Node, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The dims a reduction over a tensor of this shape runs over, in order."""
    dims = DIMS[node.op.split(".")[1]](node, len(shape))
    if dims is None or dims == ():
        return tuple(range(len(shape)))
    return tuple(sorted(d % len(shape) for d in integers(dims)))


def natural_shape(node: Node, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The reduced tensor's shape with dims as the op sees them (groups of channels apart), and those it reduces."""
    name = node.op.split(".")[1]
    if name in CHANNEL_SHAPES:
        return CHANNEL_SHAPES[name](node, shape)
    return shape, reduced_dims(node, shape)


def _inner(lowerer: Lowerer, node: Node, index: tuple[Index, ...], ref: Ref | None = None) -> Expr:
    """The reduced tensor's element at this row and the space's column."""
    ref = ref or source(node)
    shape = lowerer.spec(ref).shape
    reduced = reduced_dims(node, shape)
    if tuple(shape[d] for d in reduced) != lowerer.columns:
        raise Unsupported(f"no recipe covers {node.op} next to a reduction over other dimensions", line=node.line)
    rows = list(_row_index(lowerer, node, index, len(shape), reduced))
    full = [lowerer.column_index(reduced.index(d)) if d in reduced else rows.pop(0) for d in range(len(shape))]
    return lowerer.value(ref, tuple(full))


def _row_index(
    lowerer: Lowerer, node: Node, index: tuple[Index, ...], rank: int, reduced: tuple[int, ...]
) -> tuple[Index, ...]:
    rows = tuple(i for d, i in enumerate(index) if d not in reduced) if len(index) == rank else index
    if not all(lowerer.is_row_index(i) for i in rows):
        raise Unsupported(f"no recipe covers {node.op} of another reduction's columns", line=node.line)
    return rows


def _plain(kind: ReduceKind) -> Emit:
    def emit(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
        if is_over_rows(lowerer, node):
            return total(lowerer, node, kind)
        return lowerer.builder.reduce(kind, _inner(lowerer, node, index))

    return emit


def _mean(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    if is_over_rows(lowerer, node):
        b = lowerer.builder
        count = math.prod(lowerer.spec(source(node)).shape)
        return b.op("mul", total(lowerer, node, "sum"), b.const(1 / count))
    return mean_of(lowerer, _inner(lowerer, node, index))


def _with_index(kind: ReduceKind, where: ReduceKind) -> Emit:
    """max.dim returns (values, indices)."""

    def emit(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
        return _plain(where if output else kind)(lowerer, node, output, index)

    return emit


def _softmax_parts(lowerer: Lowerer, node: Node, index: tuple[Index, ...]) -> tuple[Expr, Expr, Expr]:
    """x - max at the index, exp of it, and the row's sum of that."""
    b = lowerer.builder
    x = _inner(lowerer, node, index)
    top = b.reduce("max", x)
    total = b.reduce("sum", b.op("exp", b.op("sub", x, top)))
    shifted = b.op("sub", lowerer.value(source(node), index), top)
    return shifted, b.op("exp", shifted), total


def _at_columns(lowerer: Lowerer, node: Node, index: tuple[Index, ...]) -> None:
    """An op that keeps its columns is only covered where it is read column by column, in place."""
    shape = node.outputs[0].shape
    reduced = reduced_dims(node, shape)
    if any(
        lowerer.space.fix(index[d], lowerer.fixed) != lowerer.column_index(i) and not is_picked(index[d])
        for i, d in enumerate(reduced)
        if shape[d] > 1
    ):
        raise Unsupported(f"no recipe covers a rearranged result of {node.op}", line=node.line)


def _softmax(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    _at_columns(lowerer, node, index)
    _, e, total = _softmax_parts(lowerer, node, index)
    b = lowerer.builder
    return b.op("mul", e, b.op("div", b.const(1.0), total))


def _safe_softmax(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    """Zeros for a row of which every element is -Inf."""
    _at_columns(lowerer, node, index)
    b = lowerer.builder
    x = _inner(lowerer, node, index)
    top = b.reduce("max", x)
    top = b.op("where", b.op("eq", top, b.const(-math.inf)), b.const(0.0), top)
    total = b.reduce("sum", b.op("exp", b.op("sub", x, top)))
    whole = b.op("where", b.op("eq", total, b.const(0.0)), b.const(1.0), total)
    e = b.op("exp", b.op("sub", lowerer.value(source(node), index), top))
    return b.op("mul", e, b.op("div", b.const(1.0), whole))


def _log_softmax(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    _at_columns(lowerer, node, index)
    shifted, _, total = _softmax_parts(lowerer, node, index)
    return lowerer.builder.op("sub", shifted, lowerer.builder.op("log", total))


def _variance_op(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    correction = node.kwargs.get("correction", 1)
    correction = 1 if correction is None else correction
    if not isinstance(correction, int | float) or count_of(lowerer) <= correction:
        raise Unsupported(f"no recipe covers {node.op} with this correction", line=node.line)
    return variance_of(lowerer, _inner(lowerer, node, index), correction)


def _affine(lowerer: Lowerer, node: Node, index: tuple[Index, ...], x: Expr, weight: Arg, bias: Arg) -> Expr:
    if isinstance(weight, Ref):
        x = lowerer.builder.op("mul", x, lowerer.operand(weight, index))  # type: ignore[arg-type]
    if isinstance(bias, Ref):
        x = lowerer.builder.op("add", x, lowerer.operand(bias, index))  # type: ignore[arg-type]
    return x


def _layer_norm(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    """(x - mean) * rsqrt(var + eps) * weight + bias."""
    x = _inner(lowerer, node, index)
    _, _, weight, bias, eps = (*node.args, None, None, None)[:5]
    result = normalized(lowerer, x, 1e-5 if eps is None else float(eps))  # type: ignore[arg-type]
    _at_columns(lowerer, node, index)
    return _affine(lowerer, node, index, result, weight, bias)


def _rms_norm(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    b = lowerer.builder
    x = _inner(lowerer, node, index)
    _, _, weight, eps = (*node.args, None, None)[:4]
    if eps is None:
        eps = {"float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}[lowerer.spec(source(node)).dtype]
    rstd = b.op("rsqrt", b.op("add", mean_of(lowerer, b.op("mul", x, x)), b.const(float(eps))))  # type: ignore[arg-type]
    _at_columns(lowerer, node, index)
    return _affine(lowerer, node, index, b.op("mul", x, rstd), weight, None)


def _vector_norm(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    b = lowerer.builder
    order = node.args[1] if len(node.args) > 1 else 2
    x = b.op("abs", _inner(lowerer, node, index))
    if order in (2, None):
        return b.op("sqrt", b.reduce("sum", b.op("mul", x, x)))
    if order == 1:
        return b.reduce("sum", x)
    if order == math.inf:
        return b.reduce("max", x)
    raise Unsupported(f"no recipe covers {node.op} of order {order}", line=node.line)


REDUCTIONS: dict[str, Emit] = {
    "sum": _plain("sum"),
    "prod": _plain("prod"),
    "amax": _plain("max"),
    "amin": _plain("min"),
    "argmax": _plain("argmax"),
    "argmin": _plain("argmin"),
    "mean": _mean,
    "max": _with_index("max", "argmax"),
    "min": _with_index("min", "argmin"),
    "_softmax": _softmax,
    "_safe_softmax": _safe_softmax,
    "_log_softmax": _log_softmax,
    "var": _variance_op,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "linalg_vector_norm": _vector_norm,
    **CHANNEL_NORMS,
    **SCANS,
}
