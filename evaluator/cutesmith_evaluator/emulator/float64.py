"""float64 arithmetic of PTX, to nearest. The fused multiply-add is exact: through error-free sums, or fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from cutesmith_evaluator.emulator.rounding import F64, Floats, odd, two_sum_error

_SPLITTER = F64(2**27 + 1)
_LOW, _HIGH = F64(2.0**-400), F64(2.0**400)  # between these no step below overflows or loses bits


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c with one rounding."""
    a, b, c = np.broadcast_arrays(np.atleast_1d(a), np.atleast_1d(b), np.atleast_1d(c))
    result = _error_free(a, b, c)
    special = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    result = np.where(special, a * b + c, result)
    outside = ~special & ~(_safe(a) & _safe(b) & _safe(c))
    for place in np.flatnonzero(outside):
        result[place] = _by_fractions(float(a[place]), float(b[place]), float(c[place]))
    return result


def minimum(a: Floats, b: Floats) -> Floats:
    """The number where one is NaN; -0 is less than +0."""
    return np.where((a < b) | ((a == b) & np.signbit(a)) | np.isnan(b), a, b)


def maximum(a: Floats, b: Floats) -> Floats:
    return np.where((a > b) | ((a == b) & ~np.signbit(a)) | np.isnan(b), a, b)


def _safe(values: Floats) -> Floats:
    size = np.abs(values)
    return (size > _LOW) & (size < _HIGH)


def _error_free(a: Floats, b: Floats, c: Floats) -> Floats:
    product = a * b
    lost = _product_error(a, b, product)
    total, carry = _two_sum(c, lost)
    upper, lower = _two_sum(product, total)
    rest = lower + carry
    return upper + odd(rest, two_sum_error(lower, carry, rest))


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    total = a + b
    return total, two_sum_error(a, b, total)


def _product_error(a: Floats, b: Floats, product: Floats) -> Floats:
    a_high, b_high = _upper(a), _upper(b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _upper(value: Floats) -> Floats:
    scaled = _SPLITTER * value
    return scaled - (scaled - value)


def _by_fractions(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 or c == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
