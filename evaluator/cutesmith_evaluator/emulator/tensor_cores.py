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
_PLANE = 1 << 14  # results at once: all that is computed of one value of the depth stays in the cache
_ROW = 32  # results side by side from which NumPy's steps cost little beside their work
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


@dataclass(frozen=True)
class _Format:
    """Products of two operands are computed as `number`, exactly, their exponents as `whole`, a zero's as `zero`."""

    number: type[np.floating[Any]]
    whole: type[np.signedinteger[Any]]
    zero: int


_NARROW = _Format(np.float32, np.int8, -60)  # float16 and less: exponents from -14 to 15
_WIDE = _Format(np.float64, np.int16, -1000)


@dataclass(frozen=True)
class _Factor:
    """Values and exponents of one operand, (k, ...): they broadcast with the other's to the results' dimensions."""

    values: Array
    exponents: Array

    def at(self, group: slice) -> _Factor:
        return _Factor(self.values[group], self.exponents[group])


def accumulate(
    a: Array, b: Array, c: Array, smallest: tuple[int, int], rule: Rule, accumulator: Accumulator = "f32"
) -> Array:
    """a · b + c for (..., m, k), (..., n, k) and (..., m, n) float32; a and b hold values of a narrower format, whose
    least exponents are `smallest`, and c values of the accumulator's. The result is float32.
    """
    lead, (m, k), n = a.shape[:-2], a.shape[-2:], b.shape[-2]
    a, b, c = a.reshape(-1, m, k), b.reshape(-1, n, k), c.reshape(-1, m, n)
    special = _special(a, b, c)
    if special is not None:
        a, b, c = (np.where(np.isfinite(operand), operand, F32(0)) for operand in (a, b, c))
    step = max(1, _PLANE // (m * n))
    result = np.empty_like(c)
    for first in range(0, len(a), step):
        part = slice(first, first + step)
        result[part] = _accumulate(a[part], b[part], c[part], smallest, rule, accumulator)
    if special is not None:
        result = np.where(np.isfinite(special), result, special)
    return result.reshape(*lead, m, n)


def _accumulate(a: Array, b: Array, c: Array, smallest: tuple[int, int], rule: Rule, accumulator: Accumulator) -> Array:
    """Rows of results lie side by side where they are long, else the tiles: NumPy goes through long rows quickly."""
    by_rows = c.shape[-1] >= _ROW
    if by_rows:
        a, b = a.transpose(2, 0, 1)[..., None], b.transpose(2, 0, 1)[:, :, None]
    else:
        a, b, c = a.transpose(2, 1, 0)[:, :, None], b.transpose(2, 1, 0)[:, None], c.transpose(1, 2, 0)
    format_ = _NARROW if min(smallest) >= SMALLEST_EXPONENTS["f16"] else _WIDE
    left, right = (_factor(each, least, format_) for each, least in zip((a, b), smallest, strict=True))
    for first in range(0, len(a), rule.group):
        group = slice(first, first + rule.group)
        c = _group(left.at(group), right.at(group), c, sum(smallest), rule, accumulator)
    return c if by_rows else c.transpose(2, 0, 1)


def _factor(values: Array, smallest: int, format_: _Format) -> _Factor:
    exponents = np.where(values == 0, np.int16(format_.zero), _exponents(values, smallest))
    return _Factor(np.ascontiguousarray(values, format_.number), np.ascontiguousarray(exponents, format_.whole))


def _exponents(values: Array, smallest: int) -> Array:
    """Of float32; those of subnormals are the format's least."""
    exponents = ((values.view(np.uint32) >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int16) - np.int16(127)
    return np.maximum(exponents, np.int16(smallest))


def _special(a: Array, b: Array, c: Array) -> Array | None:
    """What IEEE arithmetic says where an infinity or a NaN takes part; None where none does."""
    if np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(c).all():
        return None
    return canonical((np.where(np.isfinite(a), np.sign(a), a) @ np.where(np.isfinite(b), np.sign(b), b).mT) + _tamed(c))


def _tamed(values: Array) -> Array:
    """Finite values become small ones, so that only real infinities are infinite."""
    return np.where(np.isfinite(values), F32(0), values)


def _group(a: _Factor, b: _Factor, c: Array, smallest: int, rule: Rule, accumulator: Accumulator) -> Array:
    """One group of products and c. `smallest`: the least exponent of a product."""
    of_c = np.where(c == 0, _ZERO, _exponents(c, -126))
    largest = np.maximum(np.maximum(_largest(a.exponents, b.exponents, smallest), of_c), np.int16(rule.floor))
    scale = _power(rule.kept - largest)
    total = _sum(a.values, b.values, scale).astype(F64)
    total += np.trunc(c * scale)
    return _rounded(total * _power(largest - rule.kept), rule, accumulator)


def _largest(a: Array, b: Array, smallest: int) -> Array:
    """The largest exponent of the products that a result sums; that of a zero where all are zero."""
    found = a[0] + b[0]
    each = np.empty_like(found)
    for one, other in zip(a[1:], b[1:], strict=True):
        np.maximum(found, np.add(one, other, out=each), out=found)
    return np.where(found < smallest, _ZERO, found.astype(np.int16))


def _sum(a: Array, b: Array, scale: Array) -> Array:
    """Products times `scale`, cut to integers below 2^27, and their sum: at most 16 in 32 bits."""
    scale = np.minimum(scale, np.finfo(a.dtype).max).astype(a.dtype)  # of float32 only where all products are zero
    each, cut = np.empty(scale.shape, a.dtype), np.empty(scale.shape, np.int32)
    total = np.zeros(scale.shape, np.int32)
    for one, other in zip(a, b, strict=True):
        np.multiply(np.multiply(one, other, out=each), scale, out=each)
        np.copyto(cut, each, casting="unsafe")
        total += cut
    return total


def _power(exponents: Array) -> Array:
    """2 ** exponents as float64."""
    return ((exponents.astype(np.int64) + np.int64(1023)) << np.int64(52)).view(F64)


def _rounded(exact: Array, rule: Rule, accumulator: Accumulator) -> Array:
    if accumulator == "f16":
        return halves.widen(halves.exact_result(exact, np.zeros_like(exact), "f16"), "f16") + F32(0)  # no -0 is made
    cut = (exact.view(np.uint64) & ~np.uint64((1 << (52 - rule.bits)) - 1)).view(F64)
    tiny = np.abs(exact) < F64(2.0**-126)
    if tiny.any():
        unit = F64(2.0 ** -(126 + rule.bits))
        cut = np.where(tiny, np.trunc(exact / unit) * unit, cut)
    return cut.astype(F32)
