"""Means and variances of a row, as expressions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .ir import Expr

if TYPE_CHECKING:
    from .lowering import Lowerer


def count_of(lowerer: Lowerer) -> int:
    return math.prod(lowerer.columns)


def mean_of(lowerer: Lowerer, x: Expr) -> Expr:
    return lowerer.builder.op("mul", lowerer.builder.reduce("sum", x), lowerer.builder.const(1 / count_of(lowerer)))


def variance_of(lowerer: Lowerer, x: Expr, correction: float) -> Expr:
    b = lowerer.builder
    centred = b.op("sub", x, mean_of(lowerer, x))
    return b.op("mul", b.reduce("sum", b.op("mul", centred, centred)), b.const(1 / (count_of(lowerer) - correction)))


def normalized(lowerer: Lowerer, x: Expr, eps: float) -> Expr:
    """(x - mean) * rsqrt(variance + eps)."""
    b = lowerer.builder
    rstd = b.op("rsqrt", b.op("add", variance_of(lowerer, x, 0), b.const(eps)))
    return b.op("mul", b.op("sub", x, mean_of(lowerer, x)), rstd)
