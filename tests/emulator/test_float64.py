"""float64 arithmetic against exact rationals rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_numbers import F32, F64, decode, encode
from ptx_kernels import apply

DOUBLES = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.sampled_from([0, 1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 1, 0x7FEFFFFFFFFFFFFF, 1 << 52, 0x3FF << 52]),
    st.builds(
        lambda sign, exponent, low: sign << 63 | exponent << 52 | low,
        st.integers(0, 1),
        st.integers(1000, 1046),
        st.sampled_from([0, 1, 1 << 51, (1 << 52) - 1, 1 << 25, (1 << 26) + 1, 0xFFFFFFF]),
    ),
)
ROWS = st.lists(st.tuples(DOUBLES, DOUBLES, DOUBLES), min_size=32, max_size=32)


def columns(rows: list[tuple[int, int, int]]) -> list[np.ndarray]:
    return [np.array(column, np.uint64) for column in zip(*rows, strict=True)]


def check(got: list[int], exact: list[Fraction | None], zeros: list[bool | None]) -> None:
    """`exact` None: a term is no number; `zeros`: the sign of a result that is exactly zero, None where it is free."""
    for result, value, negative in zip(got, exact, zeros, strict=True):
        if value is None:
            continue
        if value == 0 and negative is None:
            assert result << 1 & ((1 << 64) - 1) == 0
        else:
            assert result == encode(value, F64, negative_zero=bool(negative))


def terms(rows: list[tuple[int, int, int]]) -> list[tuple[Fraction, ...] | None]:
    decoded = [tuple(decode(bits, F64) for bits in row) for row in rows]
    return [row if all(isinstance(each, Fraction) for each in row) else None for row in decoded]  # type: ignore[misc]


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@given(rows=ROWS)
@settings(max_examples=20, deadline=None)
def test_one_rounding(name: str, rows: list[tuple[int, int, int]]) -> None:
    a, b, _ = columns(rows)
    got = apply(f"{name}.rn.f64 {{}}, {{}}, {{}}", a, b, result=np.uint64)
    does = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}[name]
    exact = [None if row is None else does(row[0], row[1]) for row in terms(rows)]
    signs = [bool((x ^ y) >> 63) if name == "mul" else None for x, y, _ in rows]
    check(got.tolist(), exact, signs)


@given(rows=ROWS)
@settings(max_examples=40, deadline=None)
def test_fma_rounds_once(rows: list[tuple[int, int, int]]) -> None:
    got = apply("fma.rn.f64 {}, {}, {}, {}", *columns(rows), result=np.uint64)
    check(got.tolist(), [None if row is None else row[0] * row[1] + row[2] for row in terms(rows)], [None] * len(rows))


def test_fma_beyond_the_range() -> None:
    big = np.array([0x7FE0000000000000, 0xFFE0000000000000], np.uint64)
    two, zero = np.full(2, 0x4000000000000000, np.uint64), np.zeros(2, np.uint64)
    got = apply("fma.rn.f64 {}, {}, {}, {}", big, two, zero, result=np.uint64)
    assert got.tolist() == [0x7FF0000000000000, 0xFFF0000000000000]


@given(rows=ROWS)
@settings(max_examples=20, deadline=None)
def test_quotients_and_roots(rows: list[tuple[int, int, int]]) -> None:
    a, b, c = columns(rows)
    quotient = apply("div.rn.f64 {}, {}, {}", a, b, result=np.uint64)
    exact = [None if row is None or row[1] == 0 else row[0] / row[1] for row in terms(rows)]
    check(quotient.tolist(), exact, [bool((x ^ y) >> 63) for x, y, _ in rows])
    root = apply("sqrt.rn.f64 {}, {}", c & np.uint64((1 << 63) - 1), result=np.uint64)
    for bits, result in zip(c.tolist(), root.tolist(), strict=True):
        value = decode(bits & ((1 << 63) - 1), F64)
        if isinstance(value, Fraction):
            assert result == nearest_root(value)


def nearest_root(value: Fraction) -> int:
    """A root of integers, with enough bits that only an exact one is a tie."""
    shift = 2400
    whole = math.isqrt(int(value * (1 << shift)))
    exact = whole * whole == value * (1 << shift)
    return encode(Fraction(2 * whole + (0 if exact else 1), 2 << shift // 2), F64)


@pytest.mark.parametrize("name", ["min", "max"])
@given(rows=ROWS)
@settings(max_examples=20, deadline=None)
def test_extremes_are_the_number_where_one_is_none(name: str, rows: list[tuple[int, int, int]]) -> None:
    a, b, _ = columns(rows)
    got = apply(f"{name}.f64 {{}}, {{}}, {{}}", a, b, result=np.uint64)
    for x, y, result in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        first, second = decode(x, F64), decode(y, F64)
        if first != first or second != second:
            continue
        lower_first = (first, -(x >> 63)) <= (second, -(y >> 63))
        assert result == (x if lower_first == (name == "min") else y)
    nan, one = np.array([0x7FF8000000000000], np.uint64), np.array([0x3FF0000000000000], np.uint64)
    assert apply(f"{name}.f64 {{}}, {{}}, {{}}", nan, one, result=np.uint64).tolist() == one.tolist()
    assert apply(f"{name}.f64 {{}}, {{}}, {{}}", one, nan, result=np.uint64).tolist() == one.tolist()


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@given(rows=ROWS)
@settings(max_examples=20, deadline=None)
def test_narrowing_rounds_once(mode: str, rows: list[tuple[int, int, int]]) -> None:
    a, _, _ = columns(rows)
    got = apply(f"cvt.{mode}.f32.f64 {{}}, {{}}", a, result=np.uint32)
    for bits, result in zip(a.tolist(), got.tolist(), strict=True):
        value = decode(bits, F64)
        if isinstance(value, Fraction):
            assert result == encode(value, F32, mode, negative_zero=bool(bits >> 63)), hex(bits)


@pytest.mark.parametrize(
    ("name", "does"), [("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)]
)
@given(rows=ROWS)
@settings(max_examples=10, deadline=None)
def test_rounding_to_integers(name: str, does, rows: list[tuple[int, int, int]]) -> None:
    a, _, _ = columns(rows)
    got = apply(f"cvt.{name}.f64.f64 {{}}, {{}}", a, result=np.uint64)
    for bits, result in zip(a.tolist(), got.tolist(), strict=True):
        value = decode(bits, F64)
        if isinstance(value, Fraction):
            assert result == encode(Fraction(does(value)), F64, negative_zero=bool(bits >> 63))
