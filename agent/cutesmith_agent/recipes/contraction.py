"""What a program multiplies: which factors of its space are rows, columns and batches of a matrix product."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .contract import Unsupported
from .ir import Load, Op, Reduce, walk
from .layout import Modes, coalesce
from .lowering import Program

FEW = 4  # rows or columns up to which a product is as quick as a reduction of each row


@dataclass(frozen=True)
class Contraction:
    """A sum over `depth` of left[batch, row, depth] * right[batch, column, depth]; the space's factors by their ids."""

    total: Reduce
    left: Load
    right: Load
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    batch: tuple[int, ...]
    depth: tuple[int, ...]

    def modes(self, program: Program, strides: tuple[int, ...], factors: tuple[int, ...]) -> Modes:
        return coalesce([program.sizes[k] for k in factors], [strides[k] for k in factors])

    def size(self, program: Program, factors: tuple[int, ...]) -> int:
        return math.prod(program.sizes[k] for k in factors)


def contraction_of(program: Program) -> Contraction | None:
    """The program's one product, if it is worth tensor cores. Raises `Unsupported` for several, or for one of computed
    values: a reduction of each row would read both factors over and over."""
    roots = tuple(s.expr for s in program.stores)
    reductions = [e for e in walk(roots) if isinstance(e, Reduce)]
    large = [e for e in reductions if _is_large(program, e)]
    if not large:
        return None
    if len(reductions) > 1:
        raise Unsupported("no recipe covers a matrix product next to another product or reduction")
    found = product_in(program, large[0])
    if found is None:
        raise Unsupported("no recipe covers a matrix product of computed values")
    return found


def _is_large(program: Program, e: Reduce) -> bool:
    """Whether elements of both factors come back in many rows and columns."""
    left, right = _operands(e)
    if left is None or right is None or e.kind != "sum":
        return False
    used = [_used(program, loads) for loads in (left, right)]
    sizes = [math.prod(program.sizes[k] for k in mine - other) for mine, other in (used, used[::-1])]
    return min(sizes) > FEW


def _operands(e: Reduce) -> tuple[tuple[Load, ...], tuple[Load, ...]] | tuple[None, None]:
    """The loads of both sides of a product that is summed."""
    if not isinstance(e.arg, Op) or e.arg.name != "mul":
        return None, None
    left, right = (tuple(x for x in walk((side,)) if isinstance(x, Load)) for side in e.arg.args)
    return left, right


def _used(program: Program, loads: tuple[Load, ...]) -> set[int]:
    return {k for load in loads for k in range(program.row_factors) if load.strides[k] and program.sizes[k] > 1}


def product_in(program: Program, e: Reduce) -> Contraction | None:
    """A sum of products of two loads; None where either is computed, or a dimension belongs to neither."""
    if not isinstance(e.arg, Op) or e.arg.name != "mul":
        return None
    left, right = e.arg.args
    if not isinstance(left, Load) or not isinstance(right, Load):
        return None
    depth = tuple(k for k in range(program.row_factors, len(program.sizes)) if program.sizes[k] > 1)
    if not all(load.strides[k] for load in (left, right) for k in depth):
        return None
    inner = next((k for k in range(program.row_factors) if program.stores[0].strides[k] == 1), None)
    if inner is not None and left.strides[inner] and not right.strides[inner]:
        left, right = right, left
    factors = range(program.row_factors)
    used_left, used_right = (_used(program, (load,)) for load in (left, right))
    if any(program.sizes[k] > 1 and k not in used_left | used_right for k in factors):
        return None
    return Contraction(
        e,
        left,
        right,
        tuple(k for k in factors if k in used_left - used_right),
        tuple(k for k in factors if k in used_right - used_left),
        tuple(k for k in factors if k in used_left & used_right),
        depth,
    )
