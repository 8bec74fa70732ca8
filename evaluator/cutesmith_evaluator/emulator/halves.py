"""float16 and bfloat16: conversions and arithmetic, each result rounded once. bfloat16 values travel as uint16 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutesmith_evaluator.emulator.rounding import (
    F16,
    F32,
    F64,
    U16,
    U32,
    U64,
    Floats,
    Rounding,
    canonical,
    odd,
    two_sum_error,
)

NAN16 = U16(0x7FFF)  # of both formats, as the device writes it


def widen(bits: Floats, kind: str) -> Floats:
    """float32 of float16 or bfloat16 bits; exact. A float16 NaN becomes the canonical one."""
    if kind == "bf16":
        return (bits.astype(U32) << U32(16)).view(F32)
    return canonical(bits.view(F16).astype(F32))


def narrow(values: Floats, kind: str, rounding: Rounding = "rn") -> Floats:
    """Bits of float16 or bfloat16 nearest to float32 values; "rz": toward zero. NaN becomes 0x7fff."""
    with_nan = np.isnan(values)
    if kind == "f16" and rounding == "rn":
        bits = values.astype(F16).view(U16)
    elif kind == "bf16" and rounding == "rn":
        bits = _nearest_bfloat16(values.view(U32))
    else:
        bits = _directed(values, kind, rounding)
    return np.where(with_nan, NAN16, bits) if with_nan.any() else bits


def _nearest_bfloat16(bits: Floats) -> Floats:
    return ((bits + U32(0x7FFF) + ((bits >> U32(16)) & U32(1))) >> U32(16)).astype(U16)


def _directed(values: Floats, kind: str, rounding: Rounding) -> Floats:
    """Toward zero first; away from it by one step where the direction asks for it and something was lost."""
    toward_zero = _truncated(values, kind)
    if rounding == "rz":
        return toward_zero
    inexact = widen(toward_zero, kind) != values
    away = inexact & (np.signbit(values) == (rounding == "rm"))
    return np.where(away, toward_zero + U16(1), toward_zero)


def _truncated(values: Floats, kind: str) -> Floats:
    """The next value of the format toward zero; a finite overflow is the largest finite value."""
    if kind == "bf16":
        return (values.view(U32) >> U32(16)).astype(U16)
    nearest = values.astype(F16)
    too_far = np.abs(nearest.astype(F32)) > np.abs(values)
    return np.where(too_far, nearest.view(U16) - U16(1), nearest.view(U16))


def exact_result(total: Floats, error: Floats, kind: str, rounding: Rounding = "rn") -> Floats:
    """The exact total + error, in float64, rounded once to bits of the format."""
    single = _odd_single(odd(total, error))
    return narrow(single, kind, rounding)


def _odd_single(values: Floats) -> Floats:
    """float64 rounded to odd float32: rounding that to a half format is as if rounded once."""
    nearest = np.asarray(values.astype(F32))
    wide = nearest.astype(F64)
    bits = nearest.view(U32)
    inexact = np.isfinite(values) & (wide != values) & ((bits & U32(1)) == 0)
    away = np.abs(wide) < np.abs(values)
    return np.where(inexact, np.where(away, bits + U32(1), bits - U32(1)), bits).view(F32)


def widen_to_double(bits: Floats, kind: str) -> Floats:
    """float64; a NaN keeps its sign and its fraction, made quiet."""
    drop = U16(10 if kind == "f16" else 7)
    fraction = (bits & ((U16(1) << drop) - U16(1))).astype(U64) << U64(52 - int(drop))
    sign = (bits & U16(0x8000)).astype(U64) << U64(48)
    values = widen(bits, kind).astype(F64)
    return np.where(np.isnan(values), (sign | fraction | U64(0x7FF8 << 48)).view(F64), values)


def of_double(values: Floats, kind: str, rounding: Rounding) -> Floats:
    """Bits of float64 values rounded once; a NaN keeps its sign and what fits of its fraction, made quiet."""
    width, quiet = (10, 0x7E00) if kind == "f16" else (7, 0x7FC0)
    bits = values.view(U64)
    fraction = (bits >> U64(52 - width)).astype(U16) & U16((1 << width) - 1)
    sign = (bits >> U64(48)).astype(U16) & U16(0x8000)
    return np.where(np.isnan(values), sign | fraction | U16(quiet), exact_result(values, F64(0), kind, rounding))


def add(a: Floats, b: Floats, kind: str) -> Floats:
    return fma(np.full_like(a, 0x3C00 if kind == "f16" else 0x3F80), a, b, kind)


def sub(a: Floats, b: Floats, kind: str) -> Floats:
    return add(a, b ^ U16(0x8000), kind)


def mul(a: Floats, b: Floats, kind: str) -> Floats:
    """A product of two halves is exact in float32."""
    return narrow(widen(a, kind) * widen(b, kind), kind) if kind == "f16" else _mul_bfloat16(a, b)


def _mul_bfloat16(a: Floats, b: Floats) -> Floats:
    product = np.multiply(widen(a, "bf16"), widen(b, "bf16"), dtype=F64)
    return exact_result(product, np.zeros_like(product), "bf16")


def fma(a: Floats, b: Floats, c: Floats, kind: str) -> Floats:
    product = np.multiply(widen(a, kind), widen(b, kind), dtype=F64)
    term = widen(c, kind).astype(F64)
    total = product + term
    return exact_result(total, two_sum_error(product, term, total), kind)


def flushed(bits: Floats, kind: str = "f16") -> Floats:
    """Subnormal values become zeros of their sign."""
    exponent = U16(0x7C00 if kind == "f16" else 0x7F80)
    return np.where(bits & exponent, bits, bits & U16(0x8000))


def halves(bits: Floats) -> tuple[Floats, Floats]:
    """The lower and the upper half of 32-bit registers."""
    return (bits & U32(0xFFFF)).astype(U16), (bits >> U32(16)).astype(U16)


def paired(function: Callable[..., Floats]) -> Callable[..., Floats]:
    """`function` on the lower and on the upper halves of 32-bit registers."""

    def both(*values: Floats) -> Floats:
        parts = [halves(value) for value in values]
        low, high = (function(*(part[place] for part in parts)) for place in range(2))
        return packed(low, high)

    return both


def packed(low: Floats, high: Floats) -> Floats:
    return low.astype(U32) | (high.astype(U32) << U32(16))
