"""Matrix products in the kernels' expressions: sums over the shared dimension of products of two elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cutesmith_evaluator.types import Arg, Node, Ref

from .contract import Unsupported
from .ir import Builder, Const, Expr, Op
from .space import Index

if TYPE_CHECKING:
    from .lowering import Lowerer

Emit = Callable[["Lowerer", Node, int, tuple[Index, ...]], Expr]
FACTORS = {"addmm": 1, "baddbmm": 1, "addmv": 1}  # where an op's two factors begin, other than at its first argument


def factors(node: Node) -> tuple[Ref, Ref]:
    """The two tensors that a product multiplies."""
    first = FACTORS.get(node.op.split(".")[1], 0)
    a, b = node.args[first], node.args[first + 1]
    assert isinstance(a, Ref)
    assert isinstance(b, Ref)
    return a, b


def _sum(lowerer: Lowerer, node: Node, index: tuple[Index, ...], *, by_rows: bool = False) -> Expr:
    """Element `index` of the product; `by_rows`: the second factor is (columns, depth)."""
    a, b = factors(node)
    rank_a, rank_b = len(lowerer.spec(a).shape), len(lowerer.spec(b).shape)
    if lowerer.columns != lowerer.spec(a).shape[-1:]:
        raise Unsupported(f"no recipe covers {node.op} next to a reduction over other dimensions", line=node.line)
    if not all(lowerer.is_row_index(i) for i in index):
        raise Unsupported(f"no recipe covers {node.op} of another reduction's columns", line=node.line)
    depth = lowerer.column_index(0)
    batch = index[: len(index) - (rank_a > 1) - (rank_b > 1)]
    row = index[len(batch) : len(batch) + 1] if rank_a > 1 else ()
    column = index[-1:] if rank_b > 1 else ()
    right = (*batch, *column, depth) if by_rows else (*batch, depth, *column)
    left = lowerer.operand(a, (*batch, *row, depth))
    other = lowerer.operand(b, right[len(right) - rank_b :])
    assert isinstance(left, Expr)
    assert isinstance(other, Expr)
    return _of_scaled(lowerer.builder, left, other)


def _of_scaled(b: Builder, left: Expr, right: Expr) -> Expr:
    """The sum of products; numbers by which a factor is multiplied or divided come after it."""
    scales = []
    for _ in range(2):
        while isinstance(left, Op) and left.name in ("mul", "div") and isinstance(left.args[1], Const):
            scales.append((left.name, left.args[1]))
            left = left.args[0]
        left, right = right, left
    total = b.reduce("sum", b.op("mul", left, right))
    for name, scale in scales:
        total = b.op(name, total, scale)
    return total


def _plain(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    return _sum(lowerer, node, index)


def _linear(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    product = _sum(lowerer, node, index, by_rows=True)
    if len(node.args) < 3 or node.args[2] is None:
        return product
    bias = lowerer.operand(node.args[2], index)
    assert isinstance(bias, Expr)
    return lowerer.builder.op("add", product, bias)


def _added(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    """beta * input + alpha * product; beta 0 leaves out what the input holds, NaN too."""
    b = lowerer.builder
    product = _scaled(lowerer, node, "alpha", _sum(lowerer, node, index))
    if node.kwargs.get("beta", 1) == 0:
        return product
    addend = lowerer.operand(node.args[0], index)
    assert isinstance(addend, Expr)
    return b.op("add", product, _scaled(lowerer, node, "beta", addend))


def _scaled(lowerer: Lowerer, node: Node, name: str, value: Expr) -> Expr:
    factor: Arg = node.kwargs.get(name, 1)
    if not isinstance(factor, int | float):
        raise Unsupported(f"no recipe covers {node.op} with a computed {name}", line=node.line)
    return lowerer.builder.op("mul", value, lowerer.builder.const(float(factor)))


PRODUCTS: dict[str, Emit] = {
    **dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), _plain),
    "linear": _linear,
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added),
}
