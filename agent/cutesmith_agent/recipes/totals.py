"""Reductions of row values over all rows: a loss that is the mean of what each row gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cutesmith_evaluator.types import Node

from .contract import Unsupported
from .ir import Expr, ReduceKind
from .space import Index, unravel
from .views import integers, source

if TYPE_CHECKING:
    from .lowering import Lowerer


def is_over_rows(lowerer: Lowerer, node: Node) -> bool:
    """Whether the op reduces all of a tensor that has a value for each row, or for each element, of several rows."""
    shape = lowerer.spec(source(node)).shape
    dims = integers(node.args[1]) if len(node.args) > 1 and node.args[1] is not None else ()
    over_all = not dims or len(dims) == len(shape)
    rows, columns = math.prod(lowerer.geometry.rows), math.prod(lowerer.columns)
    return over_all and rows > 1 and math.prod(shape) in (rows, rows * columns)


def total(lowerer: Lowerer, node: Node, kind: ReduceKind) -> Expr:
    """The reduction of each row's elements, where there are any, and then of all rows."""
    if kind in ("argmax", "argmin"):
        raise Unsupported(f"no recipe covers {node.op} over several rows", line=node.line)
    shape = lowerer.spec(source(node)).shape
    rows = math.prod(lowerer.geometry.rows)
    elements = math.prod(shape) > rows
    order = lowerer.geometry.order if elements else tuple(range(lowerer.space.row_dims))
    flat = Index()
    for d in order:
        size = math.prod(f.size for f in lowerer.space.dims[d])
        flat = flat.times(size).add(lowerer.space.index(d))
    value = lowerer.value(source(node), unravel(lowerer.space, flat, shape))
    if elements:
        value = lowerer.builder.reduce(kind, value)
    elif value.per_column:
        raise Unsupported(f"no recipe covers {node.op} of part of the reduced dimensions", line=node.line)
    return lowerer.builder.total(kind, value)
