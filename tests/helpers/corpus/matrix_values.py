"""Matrix elements that show how a tensor core adds: exact ones, plain ones, ones that cancel, and special ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpus.values import bits

Array = np.ndarray[Any, np.dtype[Any]]
U64 = np.uint64

# Bits of exponent and mantissa, bytes of an element, and how far exponents spread to both sides where sums cancel.
FORMATS: dict[str, tuple[int, int, int, int]] = {
    "f16": (5, 10, 2, 6),
    "bf16": (8, 7, 2, 12),
    "tf32": (8, 10, 4, 12),
    "f32": (8, 23, 4, 12),
    "e4m3": (4, 3, 1, 5),
    "e5m2": (5, 2, 1, 6),
    "f64": (11, 52, 8, 20),
}
_FAR = {"f32": 30, "f16": 12}  # of sums; operands of these formats are not used with "far"
VARIANTS = ("integers", "plain", "cancelling", "special")


def elements(form: str, variant: str, name: str, count: int) -> Array:
    """Bits of `count` elements. "integers": -4 to 4. "plain": below 2 in size. "cancelling": 2^±spread, opposite
    signs. "far": so, but sums are 2^±30 (float16: 2^±12). "special": zeros with infinities, NaNs, the largest,
    subnormals and ones in between."""
    if form not in FORMATS:
        return bits(f"{name}/{form}", count, {"s8": "i1", "u8": "u1", "s32": "i4"}[form])
    exponent, mantissa, size, spread = FORMATS[form]
    raw = bits(f"{name}/{form}/{variant}", count)
    bias = U64((1 << (exponent - 1)) - 1)
    spread = _FAR.get(form, spread) if variant == "far" else spread
    fraction = (raw >> U64(8)) & U64((1 << mantissa) - 1)
    sign = (raw >> U64(63)) << U64(exponent + mantissa)
    if variant == "integers":
        made = _integer(raw, exponent, mantissa)
    elif variant == "special":
        made = _special(form, raw, exponent, mantissa)
    else:
        power = bias - raw % U64(4) if variant == "plain" else bias - U64(spread) + raw % U64(2 * spread + 1)
        made = sign | (power << U64(mantissa)) | fraction
    return (made << U64(13) if form == "tf32" else made).astype(f"u{size}")


def _integer(raw: Array, exponent: int, mantissa: int) -> Array:
    values = (raw % U64(9)).astype(np.int64) - 4
    wide = values.astype(np.float64).view(U64)
    bias = (1 << (exponent - 1)) - 1
    size = (wide >> U64(52)) & U64(0x7FF)
    short = ((size - U64(1023 - bias)) << U64(mantissa)) | ((wide & U64((1 << 52) - 1)) >> U64(52 - mantissa))
    return np.where(values == 0, U64(0), short | ((wide >> U64(63)) << U64(exponent + mantissa)))


def _special(form: str, raw: Array, exponent: int, mantissa: int) -> Array:
    """Seven of eight are zeros or small numbers, so that most sums hold one special element or none."""
    top, sign = ((1 << exponent) - 1) << mantissa, 1 << (exponent + mantissa)
    one = ((1 << (exponent - 1)) - 1) << mantissa
    largest, infinity, nan = top - 1, top, top | (1 << (mantissa - 1))
    if form == "e4m3":  # no infinity; all ones is NaN
        largest, infinity, nan = 0x7E, 0x7E, 0x7F
    rare = np.array([largest, infinity, nan, largest | sign, infinity | sign, 1, 3 | sign, sign], U64)
    common = np.array([0, one, one | sign, 0, (1 << mantissa) - 1, 0, 2, 0], U64)
    return np.where((raw >> U64(40)) % U64(29) == 0, rare[(raw >> U64(8)) % U64(8)], common[raw % U64(8)])
