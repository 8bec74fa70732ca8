"""float32 instructions against exact rationals rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_numbers import F32, Exact, decode, encode
from ptx_kernels import apply

NAN = 0x7FFFFFFF
MODES = ("rn", "rz", "rm", "rp")
SPECIAL = [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x33800000]
PATTERNS = st.one_of(
    st.sampled_from(SPECIAL + [value | 0x80000000 for value in SPECIAL]),
    st.integers(0, 0xFFFFFFFF),
    st.builds(
        lambda sign, exponent, low: sign << 31 | exponent << 23 | low,
        st.integers(0, 1),
        st.integers(120, 135),
        st.integers(0, 15),
    ),
)


def columns(count: int) -> st.SearchStrategy[list[np.ndarray]]:
    rows = st.lists(st.tuples(*[PATTERNS] * count), min_size=48, max_size=48)
    return rows.map(lambda made: [np.array(column, np.uint32) for column in zip(*made, strict=True)])


def is_number(*values: Exact) -> bool:
    return all(isinstance(value, Fraction) for value in values)


def negative(bits: int) -> bool:
    return bool(bits >> 31)


def expected_sum(a: int, b: int, mode: str) -> int:
    x, y = decode(a, F32), decode(b, F32)
    if not is_number(x, y):
        total = float(x) + float(y)
        return NAN if math.isnan(total) else (0x7F800000 if total > 0 else 0xFF800000)
    same_sign = negative(a) == negative(b)
    minus = negative(a) if x == 0 and y == 0 and same_sign else mode == "rm"
    return encode(x + y, F32, mode, negative_zero=minus)


def expected_product(a: int, b: int, mode: str) -> int:
    x, y = decode(a, F32), decode(b, F32)
    minus = negative(a) != negative(b)
    if not is_number(x, y):
        if any(isinstance(v, float) and math.isnan(v) for v in (x, y)) or 0 in (x, y):
            return NAN
        return 0xFF800000 if minus else 0x7F800000
    return encode(x * y, F32, mode, negative_zero=minus)


def flushed_product(a: int, b: int) -> int:
    """.ftz looks at the size that the rounded product has where exponents go on below: 2^30 times as large here."""
    x, y = decode(a, F32), decode(b, F32)
    if is_number(x, y) and encode(x * y * 2**30, F32) & 0x7FFFFFFF < 31 << 23:
        return 0x80000000 if negative(a) != negative(b) else 0
    return expected_product(a, b, "rn")


def expected_quotient(a: int, b: int, mode: str) -> int:
    x, y = decode(a, F32), decode(b, F32)
    sign = 0x80000000 if negative(a) != negative(b) else 0
    if any(isinstance(v, float) and math.isnan(v) for v in (x, y)):
        return NAN
    if isinstance(x, float):
        return NAN if isinstance(y, float) else sign | 0x7F800000
    if isinstance(y, float):
        return sign
    if y == 0:
        return NAN if x == 0 else sign | 0x7F800000
    return encode(x / y, F32, mode, negative_zero=bool(sign))


def expected_fma(a: int, b: int, c: int, mode: str) -> int:
    x, y, z = (decode(each, F32) for each in (a, b, c))
    product_negative = negative(a) != negative(b)
    if not is_number(x, y, z):
        product = expected_product(a, b, "rn")
        if product == NAN or (product & 0x7FFFFFFF != 0x7F800000 and is_number(z)):
            return NAN if product == NAN else product
        if isinstance(z, float) and math.isnan(z):
            return NAN
        if not is_number(x, y):
            clash = isinstance(z, float) and negative(c) != product_negative
            return NAN if clash else (0xFF800000 if product_negative else 0x7F800000)
        return c
    exact_zeros = x * y == 0 and z == 0 and product_negative == negative(c)
    minus = negative(c) if exact_zeros else mode == "rm"
    return encode(x * y + z, F32, mode, negative_zero=minus)


def agree(got: np.ndarray, expected: list[int], inputs: list[np.ndarray]) -> None:
    for place, (have, want) in enumerate(zip(got.tolist(), expected, strict=True)):
        operands = [hex(int(column[place])) for column in inputs]
        assert have == want, f"{operands}: {have:#010x} instead of {want:#010x}"


TWO: list[tuple[str, Callable[[int, int, str], int]]] = [
    ("add", expected_sum),
    ("mul", expected_product),
    ("div", expected_quotient),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "expected"), TWO, ids=[name for name, _ in TWO])
@given(inputs=columns(2))
@settings(max_examples=25, deadline=None)
def test_two_operands_round_once(name: str, expected: Callable, mode: str, inputs: list[np.ndarray]) -> None:
    got = apply(f"{name}.{mode}.f32 {{}}, {{}}, {{}}", *inputs, result=np.uint32)
    agree(got, [expected(int(a), int(b), mode) for a, b in zip(*inputs, strict=True)], inputs)


@pytest.mark.parametrize("mode", MODES)
@given(inputs=columns(2))
@settings(max_examples=10, deadline=None)
def test_sub_is_add_of_the_negative(mode: str, inputs: list[np.ndarray]) -> None:
    got = apply(f"sub.{mode}.f32 {{}}, {{}}, {{}}", *inputs, result=np.uint32)
    agree(got, [expected_sum(int(a), int(b) ^ 0x80000000, mode) for a, b in zip(*inputs, strict=True)], inputs)


@pytest.mark.parametrize("mode", MODES)
@given(inputs=columns(3))
@settings(max_examples=40, deadline=None)
def test_fma_rounds_once(mode: str, inputs: list[np.ndarray]) -> None:
    got = apply(f"fma.{mode}.f32 {{}}, {{}}, {{}}, {{}}", *inputs, result=np.uint32)
    agree(got, [expected_fma(*(int(v) for v in row), mode) for row in zip(*inputs, strict=True)], inputs)


def bits(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint32)


@pytest.mark.parametrize("mode", MODES)
def test_fma_where_rounding_through_float64_goes_wrong(mode: str) -> None:
    """a * b is a midpoint of float32 but for c, which float64 cannot hold beside it."""
    a = bits(*[1 + 2.0**-12] * 4)
    c = bits(2.0**-70, -(2.0**-70), 2.0**-149, -(2.0**-149))
    got = apply(f"fma.{mode}.f32 {{}}, {{}}, {{}}, {{}}", a, a, c, result=np.uint32)
    agree(got, [expected_fma(int(x), int(x), int(z), mode) for x, z in zip(a, c, strict=True)], [a, a, c])


@pytest.mark.parametrize("mode", MODES)
@given(inputs=columns(1))
@settings(max_examples=15, deadline=None)
def test_sqrt_and_rcp(mode: str, inputs: list[np.ndarray]) -> None:
    got = apply(f"rcp.{mode}.f32 {{}}, {{}}", *inputs, result=np.uint32)
    agree(got, [expected_quotient(0x3F800000, int(a), mode) for a in inputs[0]], inputs)
    roots = apply(f"sqrt.{mode}.f32 {{}}, {{}}", *inputs, result=np.uint32)
    for a, root in zip(inputs[0].tolist(), roots.tolist(), strict=True):
        check_root(a, root, mode)


def check_root(a: int, root: int, mode: str) -> None:
    """By squares of neighbours: no square root is computed."""
    exact = decode(a, F32)
    if not isinstance(exact, Fraction) or exact < 0:
        assert root == (a if a == 0x7F800000 else NAN)
    elif exact == 0:
        assert root == a
    else:
        below, here, above = (decode(root + step, F32) for step in (-1, 0, 1))
        assert is_number(below, here, above)
        if mode == "rn":
            assert ((below + here) / 2) ** 2 <= exact <= ((here + above) / 2) ** 2
        elif mode == "rp":
            assert below**2 < exact <= here**2
        else:
            assert here**2 <= exact < above**2


@given(inputs=columns(2))
@settings(max_examples=25, deadline=None)
def test_minimum_and_maximum(inputs: list[np.ndarray]) -> None:
    for name, better in (("min", lambda x, y: x < y), ("max", lambda x, y: x > y)):
        plain = apply(f"{name}.f32 {{}}, {{}}, {{}}", *inputs, result=np.uint32)
        strict = apply(f"{name}.NaN.f32 {{}}, {{}}, {{}}", *inputs, result=np.uint32)
        for a, b, loose, nan_wins in zip(*(column.tolist() for column in (*inputs, plain, strict)), strict=True):
            x, y = decode(a, F32), decode(b, F32)
            nans = [isinstance(v, float) and math.isnan(v) for v in (x, y)]
            if any(nans):
                assert nan_wins == NAN
                assert loose == (NAN if all(nans) else b if nans[0] else a)
                continue
            order = {"min": 1, "max": -1}[name]
            zero_first = a if negative(a) == (order == 1) else b
            want = zero_first if x == y == 0 else a if better(x, y) or x == y else b
            assert loose == nan_wins == want


@given(inputs=columns(2))
@settings(max_examples=15, deadline=None)
def test_ftz_and_sat(inputs: list[np.ndarray]) -> None:
    flush = lambda value: value & 0x80000000 if value & 0x7F800000 == 0 else value  # noqa: E731
    got = apply("mul.ftz.f32 {}, {}, {}", *inputs, result=np.uint32)
    pairs = [(flush(int(a)), flush(int(b))) for a, b in zip(*inputs, strict=True)]
    agree(got, [flushed_product(a, b) for a, b in pairs], inputs)
    clamped = apply("add.sat.f32 {}, {}, {}", *inputs, result=np.uint32)
    for a, b, have in zip(*(column.tolist() for column in (*inputs, clamped)), strict=True):
        total = decode(expected_sum(a, b, "rn"), F32)
        want = 0 if total != total or total <= 0 else 0x3F800000 if total >= 1 else expected_sum(a, b, "rn")
        assert have == want


@given(inputs=columns(2))
@settings(max_examples=10, deadline=None)
def test_sign_operations_touch_no_other_bit_of_a_number(inputs: list[np.ndarray]) -> None:
    a, b = inputs
    number = (a & 0x7FFFFFFF) <= 0x7F800000
    negative, size = (apply(f"{name}.f32 {{}}, {{}}", a, result=np.uint32) for name in ("neg", "abs"))
    assert (negative == np.where(number, a ^ np.uint32(0x80000000), NAN)).all()
    assert (size == np.where(number, a & np.uint32(0x7FFFFFFF), NAN)).all()
    want = (b & np.uint32(0x7FFFFFFF)) | (a & np.uint32(0x80000000))
    assert (apply("copysign.f32 {}, {}, {}", a, b, result=np.uint32) == want).all()


COMPARISONS = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


@given(inputs=columns(2))
@settings(max_examples=10, deadline=None)
def test_comparisons_with_and_without_nan(inputs: list[np.ndarray]) -> None:
    values = [(decode(a, F32), decode(b, F32)) for a, b in zip(*(column.tolist() for column in inputs), strict=True)]
    nan = [any(isinstance(v, float) and math.isnan(v) for v in pair) for pair in values]
    for name, holds in COMPARISONS.items():
        for suffix, on_nan in (("", False), ("u", True)):
            got = apply(f"setp.{name}{suffix}.f32 {{}}, {{}}, {{}}", *inputs, result=np.uint32, predicate=True)
            want = [on_nan if is_nan else holds(*pair) for pair, is_nan in zip(values, nan, strict=True)]
            assert got.astype(bool).tolist() == want, name + suffix
    for name, wanted in (("nan", True), ("num", False)):
        got = apply(f"setp.{name}.f32 {{}}, {{}}, {{}}", *inputs, result=np.uint32, predicate=True)
        assert got.astype(bool).tolist() == [is_nan == wanted for is_nan in nan]
