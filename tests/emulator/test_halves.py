"""float16 and bfloat16: conversions and arithmetic against exact rationals rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_numbers import BF16, F16, F32, Format, decode, encode
from ptx_kernels import apply

FORMATS = {"f16": F16, "bf16": BF16}
NAN = 0x7FFF
SINGLES = st.one_of(
    st.integers(0, 0xFFFFFFFF),
    st.sampled_from([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x7F7FFFFF, 0x33000000, 0x477FF000]),
    st.builds(
        lambda sign, exponent, low: sign << 31 | exponent << 23 | low,
        st.integers(0, 1),
        st.integers(98, 145),
        st.sampled_from([0, 0x1000, 0x8000, 0x18000, 0x3000, 0x1001, 0x7FFFFF]),
    ),
)
HALVES = st.one_of(st.integers(0, 0xFFFF), st.sampled_from([0, 0x8000, 1, 0x3C00, 0x3F80, 0x7C00, 0x7F80, 0x7E00]))


def array(values: list[int], dtype: type) -> np.ndarray:
    return np.array(values, dtype)


def narrowed(bits: int, form: Format, mode: str) -> int:
    value = decode(bits, F32)
    if isinstance(value, float):
        return NAN if math.isnan(value) else form.infinity | (form.sign if value < 0 else 0)
    return encode(value, form, mode, negative_zero=bool(bits >> 31))


@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("kind", FORMATS)
@given(values=st.lists(SINGLES, min_size=64, max_size=64))
@settings(max_examples=25, deadline=None)
def test_narrowing(kind: str, mode: str, values: list[int]) -> None:
    got = apply(f"cvt.{mode}.{kind}.f32 {{}}, {{}}", array(values, np.uint32), result=np.uint16)
    assert got.tolist() == [narrowed(value, FORMATS[kind], mode) for value in values]


@pytest.mark.parametrize("kind", FORMATS)
@given(values=st.lists(st.tuples(SINGLES, SINGLES), min_size=32, max_size=32))
@settings(max_examples=15, deadline=None)
def test_narrowing_two_puts_the_first_on_top(kind: str, values: list[tuple[int, int]]) -> None:
    first, second = (array(list(column), np.uint32) for column in zip(*values, strict=True))
    got = apply(f"cvt.rn.{kind}x2.f32 {{}}, {{}}, {{}}", first, second, result=np.uint32)
    form = FORMATS[kind]
    assert got.tolist() == [narrowed(a, form, "rn") << 16 | narrowed(b, form, "rn") for a, b in values]


@pytest.mark.parametrize("kind", FORMATS)
def test_widening_is_exact(kind: str) -> None:
    """Every bit pattern there is."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    got = apply(f"cvt.f32.{kind} {{}}, {{}}", bits, result=np.uint32)
    for narrow, wide in zip(bits.tolist()[::7], got.tolist()[::7], strict=True):
        value, widened = decode(narrow, FORMATS[kind]), decode(wide, F32)
        same_nan = value != value and widened != widened
        assert same_nan or (value == widened and narrow >> 15 == wide >> 31), hex(narrow)


def expected_fma(a: int, b: int, c: int, form: Format) -> int | None:
    """None where a term is no number: those are checked by class alone."""
    x, y, z = (decode(each, form) for each in (a, b, c))
    if not all(isinstance(value, Fraction) for value in (x, y, z)):
        return None
    exact_zeros = x * y == 0 and z == 0 and bool((a ^ b) & form.sign) == bool(c & form.sign)
    return encode(x * y + z, form, negative_zero=bool(c & form.sign) and exact_zeros)


@pytest.mark.parametrize("kind", FORMATS)
@given(rows=st.lists(st.tuples(HALVES, HALVES, HALVES), min_size=64, max_size=64))
@settings(max_examples=25, deadline=None)
def test_arithmetic_rounds_once(kind: str, rows: list[tuple[int, int, int]]) -> None:
    form = FORMATS[kind]
    a, b, c = (array(list(column), np.uint16) for column in zip(*rows, strict=True))
    one, minus_zero = encode(Fraction(1), form), form.sign
    got = apply(f"fma.rn.{kind} {{}}, {{}}, {{}}, {{}}", a, b, c, result=np.uint16).tolist()
    total = apply(f"add.rn.{kind} {{}}, {{}}, {{}}", a, b, result=np.uint16).tolist()
    product = apply(f"mul.rn.{kind} {{}}, {{}}, {{}}", a, b, result=np.uint16).tolist()
    for (x, y, z), fused, added, multiplied in zip(rows, got, total, product, strict=True):
        for have, want in (
            (fused, expected_fma(x, y, z, form)),
            (added, expected_fma(one, x, y, form)),
            (multiplied, expected_fma(x, y, minus_zero if (x ^ y) & form.sign else 0, form)),
        ):
            assert want is None or have == want, [hex(v) for v in (x, y, z)]


@given(rows=st.lists(st.tuples(HALVES, HALVES), min_size=64, max_size=64))
@settings(max_examples=10, deadline=None)
def test_pairs_work_on_both_halves(rows: list[tuple[int, int]]) -> None:
    a, b = (array(list(column), np.uint16) for column in zip(*rows, strict=True))
    whole = apply("mul.rn.f16x2 {}, {}, {}", a.view(np.uint32), b.view(np.uint32), result=np.uint32)
    assert (whole.view(np.uint16) == apply("mul.rn.f16 {}, {}, {}", a, b, result=np.uint16)).all()


@given(rows=st.lists(st.tuples(HALVES, HALVES), min_size=64, max_size=64))
@settings(max_examples=10, deadline=None)
def test_pairs_compare_by_halves(rows: list[tuple[int, int]]) -> None:
    a, b = (array(list(column), np.uint16).view(np.uint32) for column in zip(*rows, strict=True))
    both = "{{ .reg .pred p, q; setp.lt.bf16x2 p|q, {1}, {2}; selp.b32 {0}, 1, 0, p; @q or.b32 {0}, {0}, 2; }}"
    got = apply(both, a, b, result=np.uint32)
    less = [decode(x, BF16) < decode(y, BF16) for x, y in rows]
    assert got.tolist() == [low + 2 * high for low, high in zip(less[::2], less[1::2], strict=True)]
