"""The `.approx` functions: within the errors that the PTX manual documents, and no better where these are large.

Each is computed in float64 and rounded. Where the manual allows an error that a validation could notice (tanh, and sin
and cos of large arguments), the result is coarsened to that order, so that a verdict from here does not flatter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutesmith_evaluator.emulator import float64
from cutesmith_evaluator.emulator.rounding import F32, F64, U32, U64, Floats, canonical

_TANH_BITS = 0xFFFFF000  # 12 significant bits: an error of 2^-12, the manual allows 2^-11
_LEAST = F32(2.0**-126)  # tanh of a subnormal number is that number
_NAN_UPPER = np.array(0x7FFFFFFF << 32, U64).view(F64)[()]
_TURNS = F32(0.15915494309189535)  # 1 / 2 pi
_SIN_STEP = F64(2.0**-22)


def ex2(a: Floats) -> Floats:
    return canonical(np.exp2(a.astype(F64)).astype(F32))


def lg2(a: Floats) -> Floats:
    return canonical(np.log2(a.astype(F64)).astype(F32))


def rsqrt(a: Floats) -> Floats:
    return canonical((1.0 / np.sqrt(a.astype(F64))).astype(F32))


def tanh(a: Floats) -> Floats:
    exact = np.tanh(a.astype(F64)).astype(F32)
    coarse = (np.asarray(exact).view(U32) + U32(0x800)) & U32(_TANH_BITS)
    return canonical(np.where(np.isnan(exact) | (np.abs(exact) < _LEAST), exact, coarse.view(F32)))


def sin(a: Floats) -> Floats:
    return _of_turns(a, np.sin)


def cos(a: Floats) -> Floats:
    return _of_turns(a, np.cos)


def _of_turns(a: Floats, function: np.ufunc) -> Floats:
    """The device scales to turns in float32 first, so the error grows with the argument."""
    turns = (a * _TURNS).astype(F64)
    value = function((turns - np.floor(turns)) * (2 * np.pi))
    coarse = (np.round(value / _SIN_STEP) * _SIN_STEP).astype(F32)
    return canonical(np.where((a == 0) & (function is np.sin), a, coarse))


def rcp_double(a: Floats) -> Floats:
    return _of_upper_word(a, lambda value: 1.0 / value)


def rsqrt_double_upper(a: Floats) -> Floats:
    return _of_upper_word(a, lambda value: np.copysign(1.0 / np.sqrt(value), value))


def rsqrt_double(a: Floats) -> Floats:
    return float64.div(np.ones_like(a), float64.sqrt(a))


def _of_upper_word(a: Floats, function: Callable[[Floats], Floats]) -> Floats:
    """.ftz of float64: the device looks at the upper 32 bits and leaves the lower ones of the result zero."""
    result = _upper_word(function(_upper_word(a)))
    return np.where(np.isnan(result), _NAN_UPPER, result)


def _upper_word(values: Floats) -> Floats:
    bits = values.view(U64) & U64(0xFFFFFFFF00000000)
    return np.where(bits & U64(0x7FF << 52), bits, bits & U64(1 << 63)).view(F64)
