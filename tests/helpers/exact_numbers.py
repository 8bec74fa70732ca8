"""An oracle for floating-point results: exact rationals, rounded once with integers. No float arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

Exact = Fraction | float  # a float is an infinity or a NaN


@dataclass(frozen=True)
class Format:
    """`bits`: of the whole; `fraction`: of the significand without its leading bit."""

    bits: int
    fraction: int

    @property
    def exponent(self) -> int:
        return self.bits - 1 - self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


F16, BF16, F32, F64 = Format(16, 10), Format(16, 7), Format(32, 23), Format(64, 52)


def decode(bits: int, form: Format) -> Exact:
    negative, size = bool(bits & form.sign), bits & (form.sign - 1)
    if size > form.infinity:
        return math.nan
    if size == form.infinity:
        return -math.inf if negative else math.inf
    exponent, fraction = size >> form.fraction, size & ((1 << form.fraction) - 1)
    if exponent:
        fraction |= 1 << form.fraction
    power = max(exponent, 1) - form.bias - form.fraction
    value = Fraction(fraction) * (Fraction(2) ** power)
    return -value if negative else value


def encode(value: Fraction, form: Format, mode: str = "rn", *, negative_zero: bool = False) -> int:
    """The bits of `value` rounded in `mode` ("rn", "rz", "rm", "rp"); of zero, `negative_zero` gives the sign."""
    if value == 0:
        return form.sign if negative_zero else 0
    sign = form.sign if value < 0 else 0
    power = max(_exponent(abs(value)), 1 - form.bias) - form.fraction
    scaled = abs(value) / Fraction(2) ** power
    whole, rest = divmod(scaled, 1)
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": rest > 0 and value < 0,
        "rp": rest > 0 and value > 0,
    }[mode]
    whole = int(whole) + up
    biased = power + form.fraction + form.bias
    size = whole if whole < 1 << form.fraction else (biased - 1 << form.fraction) + whole
    if size >= form.infinity:
        size = form.infinity if up or mode == "rn" or _outward(mode, value) else form.infinity - 1
    return sign | size


def _outward(mode: str, value: Fraction) -> bool:
    return (mode == "rp" and value > 0) or (mode == "rm" and value < 0)


def _exponent(value: Fraction) -> int:
    """floor(log2(value))"""
    estimate = value.numerator.bit_length() - value.denominator.bit_length()
    return estimate if Fraction(2) ** estimate <= value else estimate - 1
