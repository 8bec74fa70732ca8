"""float32 arithmetic of PTX: each operation rounded once, in the rounding that the instruction names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutesmith_evaluator.emulator.rounding import (
    F32,
    F64,
    U32,
    Floats,
    Rounding,
    canonical,
    exact_directed,
    round_sum,
)

_SIGN, _MAGNITUDE = U32(0x80000000), U32(0x7FFFFFFF)


def add(a: Floats, b: Floats, rounding: Rounding = "rn") -> Floats:
    return canonical(a + b if rounding == "rn" else round_sum(a.astype(F64), b.astype(F64), rounding))


def sub(a: Floats, b: Floats, rounding: Rounding = "rn") -> Floats:
    return canonical(a - b if rounding == "rn" else round_sum(a.astype(F64), -b.astype(F64), rounding))


def mul(a: Floats, b: Floats, rounding: Rounding = "rn") -> Floats:
    """A product of two float32 is exact in float64."""
    return canonical(a * b if rounding == "rn" else exact_directed(np.multiply(a, b, dtype=F64), rounding))


def fma(a: Floats, b: Floats, c: Floats, rounding: Rounding = "rn") -> Floats:
    return canonical(round_sum(np.multiply(a, b, dtype=F64), c.astype(F64), rounding))


def div(a: Floats, b: Floats, rounding: Rounding = "rn") -> Floats:
    """A quotient of two float32 that is no float32 is too far from one for float64 to land on it; so with roots."""
    return canonical(a / b if rounding == "rn" else exact_directed(np.divide(a, b, dtype=F64), rounding))


def rcp(a: Floats, rounding: Rounding = "rn") -> Floats:
    return div(np.ones_like(a), a, rounding)


def sqrt(a: Floats, rounding: Rounding = "rn") -> Floats:
    return canonical(np.sqrt(a) if rounding == "rn" else exact_directed(np.sqrt(a, dtype=F64), rounding))


def neg(a: Floats) -> Floats:
    return canonical((a.view(U32) ^ _SIGN).view(F32))


def absolute(a: Floats) -> Floats:
    return canonical((a.view(U32) & _MAGNITUDE).view(F32))


def copysign(a: Floats, b: Floats) -> Floats:
    """The magnitude of b with the sign of a."""
    return ((b.view(U32) & _MAGNITUDE) | (a.view(U32) & _SIGN)).view(F32)


def of_magnitudes(function: Callable[[Floats, Floats], Floats], a: Floats, b: Floats) -> Floats:
    """min or max of the magnitudes, with the sign that the product would have (.xorsign.abs)."""
    found = function(absolute(a), absolute(b))
    sign = (a.view(U32) ^ b.view(U32)) & _SIGN
    return np.where(np.isnan(found), found, (np.asarray(found).view(U32) | sign).view(F32))


def minimum(a: Floats, b: Floats, *, nan: bool) -> Floats:
    """`nan`: a NaN wins; else the number wins. -0 is less than +0."""
    return _chosen(a, b, (a < b) | ((a == b) & np.signbit(a)), nan)


def maximum(a: Floats, b: Floats, *, nan: bool) -> Floats:
    return _chosen(a, b, (a > b) | ((a == b) & ~np.signbit(a)), nan)


def _chosen(a: Floats, b: Floats, first: Floats, nan: bool) -> Floats:
    chosen = np.where(first, a, b)
    is_nan, other_nan = np.isnan(a), np.isnan(b)
    if not (is_nan.any() or other_nan.any()):
        return chosen
    if nan:
        return np.where(is_nan | other_nan, canonical(np.asarray(F32(np.nan))), chosen)
    return canonical(np.where(is_nan, b, np.where(other_nan, a, chosen)))
