"""Correct rounding of float32 results in every direction, through float64 and the sign of what float64 loses.

Two facts carry all of it. A float64 that is the nearest to an exact value lies on the same side of every float32 and of
every midpoint of two float32 as that value, or on it. And the error of a float64 sum is itself a float64 (TwoSum).
So nearest-even goes wrong only where the float64 is a midpoint that the exact value is not, and a directed rounding
needs the error's sign only where the float64 is a float32.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Rounding = Literal["rn", "rz", "rm", "rp"]
Floats = Any  # an array, or a NumPy scalar where the value is the same in all threads

F16, F32, F64 = np.float16, np.float32, np.float64
U16, U32, U64 = np.uint16, np.uint32, np.uint64
NAN32 = np.array(0x7FFFFFFF, U32).view(F32)[()]
_MIDPOINT_MASK, _MIDPOINT = U64(0x1FFFFFFF), U64(0x10000000)  # the bits of a float64 below a float32
_SMALLEST_NORMAL = F64(2.0**-126)
_SIGN32, _SIGN64 = U32(0x80000000), U64(1 << 63)


def canonical(values: Floats) -> Floats:
    """Every NaN that float32 arithmetic makes is 0x7fffffff on the device."""
    nan = np.isnan(values)
    return np.where(nan, NAN32, values) if nan.any() else values


def flushed(values: Floats) -> Floats:
    """Subnormal float32 become zeros of their sign (.ftz)."""
    bits = values.view(U32)
    subnormal = (bits & U32(0x7F800000)) == 0
    if not subnormal.any():
        return values
    return np.where(subnormal, bits & _SIGN32, bits).view(F32)


def saturated(values: Floats) -> Floats:
    """Clamped to [0, 1], NaN to +0 (.sat)."""
    clamped = np.minimum(np.maximum(values, F32(0)), F32(1))
    return np.where(clamped > 0, clamped, F32(0))  # NaN and -0 become +0


def two_sum_error(a: Floats, b: Floats, total: Floats) -> Floats:
    """What `total` = a + b in float64 lacks; NaN where a term is not finite."""
    part = total - a
    return (a - (total - part)) + (b - part)


def round_sum(a: Floats, b: Floats, rounding: Rounding = "rn") -> Floats:
    """a + b, float64 both, as one rounding to float32."""
    total = a + b
    if rounding == "rn":
        return _nearest_of_sum(a, b, total)
    result = directed(total, two_sum_error(a, b, total), rounding)
    zero = total == 0
    if not zero.any():
        return result
    exact_zero = zero & ~((a == 0) & (b == 0) & (np.signbit(a) == np.signbit(b)))
    return np.where(exact_zero, F32(-0.0 if rounding == "rm" else 0.0), result)


def _nearest_of_sum(a: Floats, b: Floats, total: Floats) -> Floats:
    result = total.astype(F32)
    doubtful = (total.view(U64) & _MIDPOINT_MASK) == _MIDPOINT
    doubtful |= np.abs(total) < _SMALLEST_NORMAL
    if not doubtful.any():
        return result
    if np.ndim(result) == 0:
        return odd(total, two_sum_error(a, b, total)).astype(F32)
    a, b = np.broadcast_to(a, total.shape)[doubtful], np.broadcast_to(b, total.shape)[doubtful]
    total = total[doubtful]
    result[doubtful] = odd(total, two_sum_error(a, b, total)).astype(F32)
    return result


def odd(total: Floats, error: Floats) -> Floats:
    """The exact total + error rounded to odd: rounded again to fewer bits it is as if rounded once."""
    bits = np.asarray(total).view(U64)
    inexact = np.isfinite(error) & (error != 0) & ((bits & U64(1)) == 0)
    grows = (error > 0) == (total > 0)
    moved = np.where(grows, bits + U64(1), bits - U64(1))
    return np.where(inexact, moved, bits).view(F64)


def directed(total: Floats, error: Floats, rounding: Rounding) -> Floats:
    """The exact total + error, where total is the nearest float64, rounded to float32 toward a side."""
    nearest = np.asarray(total.astype(F32))
    wide = nearest.astype(F64)
    equal = wide == total
    if rounding == "rz":
        beyond = (np.abs(wide) > np.abs(total)) | (equal & np.where(total > 0, error < 0, error > 0))
        return (nearest.view(U32) - beyond.astype(U32)).view(F32)
    if rounding == "rm":
        return np.where((wide > total) | (equal & (error < 0)), -_above(-nearest), nearest)
    return np.where((wide < total) | (equal & (error > 0)), _above(nearest), nearest)


def _above(values: Floats) -> Floats:
    """The next float32 toward +infinity; nothing useful for that itself and for NaN."""
    bits = values.view(U32)
    moved = np.where(bits >> U32(31), bits - U32(1), bits + U32(1))
    return np.where(values == 0, U32(1), moved).view(F32)


def exact_directed(exact: Floats, rounding: Rounding) -> Floats:
    """A value that float64 holds exactly, rounded to float32 toward a side."""
    return directed(exact, F64(0), rounding)
