"""The `.approx` functions: within the errors that the PTX manual documents, and no better where these are large.

Each is computed in float64 and rounded. Where the manual allows an error that a validation could notice (tanh, and sin
and cos of large arguments), the result is coarsened to that order, so that a verdict from here does not flatter.
"""

from __future__ import annotations

import numpy as np

from cutesmith_evaluator.emulator.rounding import F32, F64, U32, Floats, canonical

_TANH_BITS = 0xFFFFF000  # 12 significant bits: an error of 2^-12, the manual allows 2^-11
_LEAST = F32(2.0**-126)  # tanh of a subnormal number is that number
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
