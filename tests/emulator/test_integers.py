"""Integer instructions against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptx_kernels import apply

EDGES = (0, 1, 2, 31, 32, 33, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 1 << 63, (1 << 64) - 1)
VALUES = st.one_of(st.sampled_from(EDGES), st.integers(0, (1 << 64) - 1))
UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def rows(count: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[VALUES] * count), min_size=64, max_size=64)


Binary = Callable[[int, int, int], int]  # a, b, bits
BINARY: dict[str, Binary] = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul.lo": lambda a, b, bits: a * b,
    "mul.hi": lambda a, b, bits: (a * b) >> bits,
    "min": lambda a, b, bits: min(a, b),
    "max": lambda a, b, bits: max(a, b),
    "div": lambda a, b, bits: quotient(a, b),
    "rem": lambda a, b, bits: a - quotient(a, b) * b,
}


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", BINARY)
@given(made=rows(2))
@settings(max_examples=10, deadline=None)
def test_binary(name: str, kind: str, made: list[tuple[int, ...]]) -> None:
    bits = int(kind[1:])
    mask = (1 << bits) - 1
    pairs = [(a & mask, (b & mask) or 3) for a, b in made]
    read = (lambda v: signed(v, bits)) if kind[0] == "s" else (lambda v: v)
    a, b = (np.array(column, UNSIGNED[bits]) for column in zip(*pairs, strict=True))
    got = apply(f"{name}.{kind} {{}}, {{}}, {{}}", a, b, result=UNSIGNED[bits])
    assert got.tolist() == [BINARY[name](read(x), read(y), bits) & mask for x, y in pairs]


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
@given(made=rows(3))
@settings(max_examples=10, deadline=None)
def test_wide_products(kind: str, made: list[tuple[int, ...]]) -> None:
    bits = int(kind[1:])
    mask, double = (1 << bits) - 1, 2 * bits
    read = (lambda v: signed(v & mask, bits)) if kind[0] == "s" else (lambda v: v & mask)
    a, b = (np.array([row[place] & mask for row in made], UNSIGNED[bits]) for place in (0, 1))
    c = np.array([row[2] & ((1 << double) - 1) for row in made], UNSIGNED[double])
    got = apply(f"mad.wide.{kind} {{}}, {{}}, {{}}, {{}}", a, b, c, result=UNSIGNED[double])
    want = [
        (read(x) * read(y) + z) & ((1 << double) - 1)
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert got.tolist() == want


SHIFTS: dict[str, Callable[[int, int, int], int]] = {
    "shl.b": lambda a, by, bits: a << by,
    "shr.u": lambda a, by, bits: a >> by,
    "shr.s": lambda a, by, bits: signed(a, bits) >> by,
}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", SHIFTS)
@given(made=rows(2))
@settings(max_examples=15, deadline=None)
def test_shifts_clamp_the_amount(name: str, bits: int, made: list[tuple[int, ...]]) -> None:
    mask = (1 << bits) - 1
    a = np.array([row[0] & mask for row in made], UNSIGNED[bits])
    by = np.array([row[1] & 0xFFFFFFFF for row in made], np.uint32)
    got = apply(f"{name}{bits} {{}}, {{}}, {{}}", a, by, result=UNSIGNED[bits])
    assert got.tolist() == [
        SHIFTS[name](x, min(y, bits), bits) & mask for x, y in zip(a.tolist(), by.tolist(), strict=True)
    ]


@given(made=rows(3))
@settings(max_examples=15, deadline=None)
def test_logic_and_fields(made: list[tuple[int, ...]]) -> None:
    a, b, c = (np.array([row[place] & 0xFFFFFFFF for row in made], np.uint32) for place in range(3))
    values = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    three = apply("lop3.b32 {}, {}, {}, {}, 0xCA", a, b, c, result=np.uint32)
    assert three.tolist() == [(x & y) | (~x & z) & 0xFFFFFFFF for x, y, z in values]
    ones = apply("popc.b32 {}, {}", a, result=np.uint32)
    assert ones.tolist() == [x.bit_count() for x in a.tolist()]
    zeros = apply("clz.b32 {}, {}", a, result=np.uint32)
    assert zeros.tolist() == [32 - x.bit_length() for x in a.tolist()]
    backwards = apply("brev.b32 {}, {}", a, result=np.uint32)
    assert backwards.tolist() == [int(f"{x:032b}"[::-1], 2) for x in a.tolist()]
    position, length = b & np.uint32(31), c & np.uint32(31)
    field = apply("bfe.u32 {}, {}, {}, {}", a, position, length, result=np.uint32)
    cut = [x >> p & ((1 << n) - 1) for x, p, n in zip(a.tolist(), position.tolist(), length.tolist(), strict=True)]
    assert field.tolist() == cut
    left = apply("shf.l.wrap.b32 {}, {}, {}, {}", a, b, c, result=np.uint32)
    assert left.tolist() == [((y << 32 | x) << (z & 31)) >> 32 & 0xFFFFFFFF for x, y, z in values]
    mixed = apply("prmt.b32 {}, {}, {}, 0x6140", a, b, result=np.uint32)
    chosen = [(x & 0xFF) | (y & 0xFF) << 8 | (x >> 8 & 0xFF) << 16 | (y >> 16 & 0xFF) << 24 for x, y, _ in values]
    assert mixed.tolist() == chosen


@given(made=rows(1))
@settings(max_examples=15, deadline=None)
def test_conversions_between_widths(made: list[tuple[int, ...]]) -> None:
    a = np.array([row[0] & 0xFFFFFFFF for row in made], np.uint32)
    assert apply("cvt.s64.s32 {}, {}", a, result=np.uint64).tolist() == [signed(x, 32) % (1 << 64) for x in a.tolist()]
    assert apply("cvt.u64.u32 {}, {}", a, result=np.uint64).tolist() == a.tolist()
    assert apply("cvt.s32.s8 {}, {}", a, result=np.uint32).tolist() == [
        signed(x & 0xFF, 8) & 0xFFFFFFFF for x in a.tolist()
    ]
    assert apply("cvt.u16.u32 {}, {}", a, result=np.uint16).tolist() == [x & 0xFFFF for x in a.tolist()]


@pytest.mark.parametrize("kind", ["s32", "u32", "s64"])
def test_float_to_integer_truncates_and_clamps(kind: str) -> None:
    width = int(kind[1:])
    low, high = (0, (1 << width) - 1) if kind[0] == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    values = np.array([0.0, -0.9, 1.5, -1.5, 2.5, 1e9, -1e9, 3e9, 5e9, -5e9, 1e19, -1e19, np.inf, -np.inf], np.float32)
    result = UNSIGNED[int(kind[1:])]
    got = apply(f"cvt.rzi.{kind}.f32 {{}}, {{}}", values, result=result)
    exact = [high if v == np.inf else low if v == -np.inf else max(low, min(high, int(v))) for v in values.tolist()]
    assert got.tolist() == [value % (1 << int(kind[1:])) for value in exact]
    nearest = apply(f"cvt.rni.{kind}.f32 {{}}, {{}}", values[:5], result=result)
    assert nearest.tolist() == [max(low, round(v)) % (1 << int(kind[1:])) for v in values[:5].tolist()]


def test_not_a_number_to_integer() -> None:
    nan = np.array([np.nan], np.float32)
    assert apply("cvt.rzi.s32.f32 {}, {}", nan, result=np.uint32)[0] == 0
    assert apply("cvt.rzi.s64.f32 {}, {}", nan, result=np.uint64)[0] == 1 << 63
