"""The 8-bit floats e4m3 and e5m2: every value by table, and rounding to them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.rounding import F32, F64, NAN32, Floats

Array = np.ndarray[Any, np.dtype[Any]]

_FRACTION = {"e4m3": 3, "e5m2": 2}
_BIAS = {"e4m3": 7, "e5m2": 15}
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
_NAN = 0x7F  # of both formats, as the device writes it
_LARGEST_BITS = {"e4m3": 0x7E, "e5m2": 0x7B}


def widen(bits: Floats, kind: str) -> Floats:
    """float32 of each; exact."""
    return _values(kind)[bits]


@lru_cache(maxsize=2)
def _values(kind: str) -> Array:
    size = np.arange(128)
    fraction, bias = _FRACTION[kind], _BIAS[kind]
    exponent, rest = size >> fraction, size & ((1 << fraction) - 1)
    significand = np.where(exponent > 0, rest + (1 << fraction), rest)
    values = np.ldexp(significand.astype(F64), np.maximum(exponent, 1) - bias - fraction).astype(F32)
    if kind == "e4m3":
        values[0x7F] = NAN32
    else:
        values[0x7C], values[0x7D:] = F32(np.inf), NAN32
    return np.concatenate([values, np.where(np.isnan(values), NAN32, -values)])


def narrow(values: Floats, kind: str) -> Floats:
    """Bits nearest to float32 values, saturated to the largest finite ones (.satfinite); NaN becomes 0x7f."""
    size = np.minimum(np.abs(values).astype(F64), LARGEST[kind])
    _, exponent = np.frexp(size)
    least = 1 - _BIAS[kind]
    unit = np.ldexp(F64(1), np.maximum(exponent - 1, least) - _FRACTION[kind])
    whole = np.rint(size / unit).astype(np.int64)  # to even
    scale = np.maximum(exponent - 1, least) - least
    bits = np.where(size == 0, 0, whole + (scale << _FRACTION[kind]))
    bits = np.minimum(bits, _LARGEST_BITS[kind]).astype(np.uint8) | (np.signbit(values).astype(np.uint8) << np.uint8(7))
    return np.where(np.isnan(values), np.uint8(_NAN), bits)
