"""Dot products as tensor cores make them: products aligned to the largest, cut, added exactly, then rounded once.

Published studies of the hardware (Fasi et al. 2021; Khattak and Mikaitis 2025) found what `Rule` holds: how many
products are added together with the accumulator, how many bits below the largest term's exponent survive the alignment,
and how the sum is rounded. The order within a group does not matter, for the sum of what survives is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cutesmith_evaluator.emulator import halves
from cutesmith_evaluator.emulator.rounding import F32, F64, canonical

Array = np.ndarray[Any, np.dtype[Any]]
Accumulator = Literal["f32", "f16"]

_ZERO = np.int16(-1000)  # the exponent of a zero: no other term is as small
_CHUNK = 1 << 18  # products at once: their parts stay in the cache
SMALLEST_EXPONENTS = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14}


@dataclass(frozen=True)
class Rule:
    """`group`: products added at once. `kept`: bits of a term below the largest exponent. `floor`: the least exponent
    that terms are aligned to. `bits`: of a float32 result's fraction, cut toward zero; float16 is rounded to nearest.
    """

    group: int
    kept: int
    floor: int
    bits: int = 23


def rule_of(arch: str, kind: str, accumulator: Accumulator) -> Rule:
    """For operands of `kind` ("f16", "bf16", "tf32") in mma.sync on an arch like "sm_90a"."""
    hopper = is_hopper(arch)
    group, kept = (16, 25) if hopper else (8, 24)
    least = -20 if accumulator == "f16" else -132
    return Rule(group // 2 if kind == "tf32" else group, kept, least - hopper)


def is_hopper(arch: str) -> bool:
    """Whether an arch like "sm_90a" has Hopper's tensor cores."""
    return int(arch.removeprefix("sm_").rstrip("af") or 0) >= 90


EIGHT_BIT = Rule(16, 13, -1000, 13)  # of Ada; Hopper's mma.sync goes through float16


def accumulate(
    a: Array, b: Array, c: Array, smallest: tuple[int, int], rule: Rule, accumulator: Accumulator = "f32"
) -> Array:
    """a · b + c for (..., m, k), (..., n, k) and (..., m, n) float32; a and b hold values of a narrower format, whose
    least exponents are `smallest`, and c values of the accumulator's. The result is float32.
    """
    lead, (m, k), n = a.shape[:-2], a.shape[-2:], b.shape[-2]
    a, b, c = a.reshape(-1, m, k), b.reshape(-1, n, k), c.reshape(-1, m, n)
    step = max(1, _CHUNK // (m * n * min(k, rule.group)))
    result = np.empty_like(c)
    for first in range(0, len(a), step):
        part = slice(first, first + step)
        result[part] = _accumulate(a[part], b[part], c[part], smallest, rule, accumulator)
    return result.reshape(*lead, m, n)


def _accumulate(a: Array, b: Array, c: Array, smallest: tuple[int, int], rule: Rule, accumulator: Accumulator) -> Array:
    special = _special(a, b, c)
    a_parts, b_parts = _parts(a, smallest[0]), _parts(b, smallest[1])
    for first in range(0, a.shape[-1], rule.group):
        group = slice(first, first + rule.group)
        c = _group(_sliced(a_parts, group), _sliced(b_parts, group), c, rule, accumulator)
    return c if special is None else np.where(np.isnan(special) | np.isinf(special), special, c)


def _special(a: Array, b: Array, c: Array) -> Array | None:
    """What IEEE arithmetic says where an infinity or a NaN takes part; None where none does."""
    if np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(c).all():
        return None
    return canonical((np.where(np.isfinite(a), np.sign(a), a) @ np.where(np.isfinite(b), np.sign(b), b).mT) + _tamed(c))


def _tamed(values: Array) -> Array:
    """Finite values become small ones, so that only real infinities are infinite."""
    return np.where(np.isfinite(values), F32(0), values)


def _parts(values: Array, smallest: int) -> tuple[Array, Array]:
    """Significands in (-2, 2) and exponents, so that the value is their product; subnormals are not normalised."""
    exponents = ((values.view(np.uint32) >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int16) - np.int16(127)
    exponents = np.maximum(exponents, np.int16(smallest))
    significands = np.ldexp(values, -exponents.astype(np.int32))
    return significands, np.where(values == 0, _ZERO, exponents)


def _sliced(parts: tuple[Array, Array], group: slice) -> tuple[Array, Array]:
    """The products' axis first, for sums along it."""
    first, second = (np.ascontiguousarray(np.moveaxis(part[..., group], -1, 0)) for part in parts)
    return first, second


def _group(a: tuple[Array, Array], b: tuple[Array, Array], c: Array, rule: Rule, accumulator: Accumulator) -> Array:
    """One group of products and c: (k, batch, m) and (k, batch, n) parts."""
    exponents = a[1][..., :, None] + b[1][..., None, :]
    c_significand, c_exponent = _parts(c, -126)
    largest = np.maximum(np.maximum(exponents.max(axis=0), c_exponent), np.int16(rule.floor))
    exponents -= largest
    terms = a[0][..., :, None] * b[0][..., None, :]
    terms *= _power(exponents, rule.kept)
    total = terms.astype(np.int32).sum(axis=0, dtype=np.int64)
    total += (c_significand * _power(c_exponent - largest, rule.kept)).astype(np.int64)
    exact = np.ldexp(total.astype(F64), largest.astype(np.int32) - rule.kept)
    return _rounded(exact, rule, accumulator)


def _power(exponents: Array, kept: int) -> Array:
    """2 ** (exponents + kept) as float32; what is cut away altogether gets a small one."""
    biased = np.maximum(exponents, np.int16(-40)).astype(np.int32) + np.int32(127 + kept)
    return (biased << np.int32(23)).view(F32)


def _rounded(exact: Array, rule: Rule, accumulator: Accumulator) -> Array:
    if accumulator == "f16":
        return halves.widen(halves.exact_result(exact, np.zeros_like(exact), "f16"), "f16") + F32(0)  # no -0 is made
    cut = (exact.view(np.uint64) & ~np.uint64((1 << (52 - rule.bits)) - 1)).view(F64)
    tiny = np.abs(exact) < F64(2.0**-126)
    if tiny.any():
        unit = F64(2.0 ** -(126 + rule.bits))
        cut = np.where(tiny, np.trunc(exact / unit) * unit, cut)
    return cut.astype(F32)
