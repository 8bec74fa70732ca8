"""An oracle for tensor cores: one dot product at a time, with exact rationals and integers. No float arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import trunc

from exact_numbers import Format, decode, encode


def exponent(value: Fraction, least: int) -> int:
    """floor(log2(|value|)), but not less than `least`."""
    power = least
    while Fraction(2) ** (power + 1) <= abs(value):
        power += 1
    return power


@dataclass(frozen=True)
class Cut:
    """How a tensor core rounds: see `dot`. `least`: the smallest exponent of the factors."""

    least: int
    group: int
    kept: int
    floor: int
    result: Format
    mode: str


def dot(a: Sequence[Fraction], b: Sequence[Fraction], c: Fraction, cut: Cut) -> Fraction:
    """In groups: each product and c cut to a multiple of 2 ** (largest exponent - kept), added, and rounded.

    A product's exponent is the sum of its factors'.
    """
    for first in range(0, len(a), cut.group):
        group = slice(first, first + cut.group)
        pairs = [(x, y) for x, y in zip(a[group], b[group], strict=True) if x and y]
        powers = [exponent(x, cut.least) + exponent(y, cut.least) for x, y in pairs]
        powers += [exponent(c, -126)] if c else []
        unit = Fraction(2) ** (max([cut.floor, *powers]) - cut.kept)
        total = sum(trunc(term / unit) for term in (*(x * y for x, y in pairs), c)) * unit
        c = value_of(encode(total, cut.result, cut.mode), cut.result)
    return c


def value_of(bits: int, form: Format) -> Fraction:
    value = decode(bits, form)
    assert isinstance(value, Fraction)
    return value
