"""float64 arithmetic of PTX, to nearest. The fused multiply-add is exact: through error-free sums, or fractions.

NaNs are an H200's: one of the operands' comes out, made quiet; one that arithmetic makes is 0xfff8000000000000.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from cutesmith_evaluator.emulator.rounding import F64, U64, Floats, Rounding, odd, two_sum_error

_SPLITTER = F64(2**27 + 1)
_LOW, _HIGH = F64(2.0**-400), F64(2.0**400)  # between these no step below overflows or loses bits


_QUIET, _SIGN, _MADE = U64(1 << 51), U64(1 << 63), U64(0xFFF8 << 48)


def quiet(value: Floats) -> Floats:
    return np.where(np.isnan(value), (value.view(U64) | _QUIET).view(F64), value)


def _with_nans(result: Floats, *operands: Floats) -> Floats:
    """The result with NaNs from the operands, the first one that is NaN."""
    nan = np.isnan(result)
    if not nan.any():
        return result
    bits = _MADE
    for operand in reversed(operands):
        bits = np.where(np.isnan(operand), operand.view(U64) | _QUIET, bits)
    return np.where(nan, bits.view(F64), result)


def add(a: Floats, b: Floats) -> Floats:
    return _with_nans(a + b, b, a)


def sub(a: Floats, b: Floats) -> Floats:
    return _with_nans(a - b, b, a)


def mul(a: Floats, b: Floats) -> Floats:
    return _with_nans(a * b, b, a)


def div(a: Floats, b: Floats) -> Floats:
    return _with_nans(a / b, a, b)


def sqrt(a: Floats) -> Floats:
    return _with_nans(np.sqrt(a), a)


def neg(a: Floats) -> Floats:
    """A NaN keeps its sign."""
    return np.where(np.isnan(a), quiet(a), -a)


def absolute(a: Floats) -> Floats:
    return np.where(np.isnan(a), quiet(a), np.abs(a))


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c with one rounding."""
    a, b, c = np.broadcast_arrays(np.atleast_1d(a), np.atleast_1d(b), np.atleast_1d(c))
    result = _error_free(a, b, c)
    special = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    fitting = np.isfinite(a) & np.isfinite(b) & np.isinf(c)  # whether the product fits or not
    result = np.where(special, np.where(fitting, c, a * b + c), result)
    outside = ~special & ~(_safe(a) & _safe(b) & _safe(c))
    for place in np.flatnonzero(outside):
        result[place] = _by_fractions(float(a[place]), float(b[place]), float(c[place]))
    return _with_nans(result, b, c, a)


def directed(total: Floats, error: Floats, rounding: Rounding) -> Floats:
    """The exact total + error, where total is the nearest float64, rounded toward a side."""
    down, up = np.nextafter(total, F64(-np.inf)), np.nextafter(total, F64(np.inf))
    lower, higher = np.where(error < 0, down, total), np.where(error > 0, up, total)
    if rounding == "rz":
        return np.where(total > 0, lower, higher)
    return {"rn": total, "rm": lower, "rp": higher}[rounding]


def minimum(a: Floats, b: Floats) -> Floats:
    """The number where one is NaN; -0 is less than +0."""
    return _number(a, b, (a < b) | ((a == b) & np.signbit(a)))


def maximum(a: Floats, b: Floats) -> Floats:
    return _number(a, b, (a > b) | ((a == b) & ~np.signbit(a)))


def _number(a: Floats, b: Floats, first: Floats) -> Floats:
    return np.where(np.isnan(a), quiet(b), np.where(first | np.isnan(b), a, b))


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
