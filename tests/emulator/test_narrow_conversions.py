"""tf32 and 8-bit floats: conversions against exact rationals rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_numbers import F16, F32, Format, decode, encode
from ptx_kernels import apply

E5M2, TF32 = Format(8, 2), Format(19, 10)
LARGEST = {"e4m3": Fraction(448), "e5m2": Fraction(57344)}
SINGLES = st.one_of(
    st.integers(0, 0xFFFFFFFF),
    st.sampled_from([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x7F7FFFFF, 0x7F7FF000, 0x3F801000]),
    st.builds(
        lambda sign, exponent, low: sign << 31 | exponent << 23 | low,
        st.integers(0, 1),
        st.integers(105, 145),
        st.sampled_from([0, 0x80000, 0x100000, 0x180000, 0x80001, 0x7FFFF, 0x1000, 0x3000, 0x7FFFFF]),
    ),
)


def array(values: list[int], dtype: type) -> np.ndarray:
    return np.array(values, dtype)


def eighth(value: Fraction | float, kind: str, *, negative: bool) -> int:
    """Bits of the nearest, saturated; e4m3 by what its numbers are: (8 + m) · 2^(e - 10), m · 2^-9."""
    sign = 0x80 if negative else 0
    if isinstance(value, float):
        return 0x7F if math.isnan(value) else sign | {"e4m3": 0x7E, "e5m2": 0x7B}[kind]
    size = abs(value)
    if size >= LARGEST[kind]:
        return sign | {"e4m3": 0x7E, "e5m2": 0x7B}[kind]
    if kind == "e5m2":
        return sign | min(encode(size, E5M2), 0x7B)
    candidates = [
        (Fraction(m, 512) if e == 0 else Fraction(8 + m) * Fraction(2) ** (e - 10), 8 * e + m)
        for e in range(16)
        for m in range(8)
        if 8 * e + m < 0x7F
    ]
    return sign | min(candidates, key=lambda each: (abs(each[0] - size), each[1] % 2))[1]


def relu_of(bits: int, is_nan: bool, *, relu: bool) -> int:
    return 0 if relu and bits & 0x80 and not is_nan else bits


@pytest.mark.parametrize("kind", LARGEST)
@pytest.mark.parametrize("relu", ["", ".relu"])
@given(rows=st.lists(st.tuples(SINGLES, SINGLES), min_size=32, max_size=32))
@settings(max_examples=10, deadline=None)
def test_two_floats_to_eighths(kind: str, relu: str, rows: list[tuple[int, int]]) -> None:
    a, b = (array(list(column), np.uint32) for column in zip(*rows, strict=True))
    got = apply(f"cvt.rn.satfinite{relu}.{kind}x2.f32 {{}}, {{}}, {{}}", a, b, result=np.uint16)

    def one(bits: int) -> int:
        value = decode(bits, F32)
        return relu_of(eighth(value, kind, negative=bool(bits >> 31)), value != value, relu=bool(relu))

    assert got.tolist() == [one(x) << 8 | one(y) for x, y in rows]


@pytest.mark.parametrize("kind", LARGEST)
def test_pairs_of_halves_to_eighths_and_back(kind: str) -> None:
    """Every float16 down, and every 8-bit float up."""
    halves = np.arange(1 << 16, dtype=np.uint32) | (np.uint32(0x3C00) << np.uint32(16))
    down = apply(f"cvt.rn.satfinite.{kind}x2.f16x2 {{}}, {{}}", halves, result=np.uint16)
    for bits in range(0, 1 << 16, 37):
        value = decode(bits, F16)
        assert int(down[bits]) & 0xFF == eighth(value, kind, negative=bool(bits >> 15)), hex(bits)
    assert set((down >> np.uint16(8)).tolist()) == {eighth(Fraction(1), kind, negative=False)}
    every = np.arange(256, dtype=np.uint16)
    up = apply(f"cvt.rn.f16x2.{kind}x2 {{}}, {{}}", every, result=np.uint32)
    for bits in range(256):
        widened = decode(int(up[bits]) & 0xFFFF, F16)
        if isinstance(widened, Fraction):
            assert eighth(widened, kind, negative=bool(bits >> 7)) == bits
        else:
            assert bits & 0x7F >= {"e4m3": 0x7F, "e5m2": 0x7C}[kind]


@pytest.mark.parametrize("rounding", ["rna", "rn", "rz", "rna.satfinite", "rn.relu"])
@given(values=st.lists(SINGLES, min_size=64, max_size=64))
@settings(max_examples=10, deadline=None)
def test_tf32(rounding: str, values: list[int]) -> None:
    got = apply(f"cvt.{rounding}.tf32.f32 {{}}, {{}}", array(values, np.uint32), result=np.uint32)
    for bits, result in zip(values, got.tolist(), strict=True):
        value = decode(bits, F32)
        if isinstance(value, Fraction):
            wanted = encode(value, TF32, "rz" if "rz" in rounding else "rn", negative_zero=bool(bits >> 31))
            if "rna" in rounding and bits & 0x1FFF == 0x1000:  # a tie, away from zero
                wanted = (bits >> 13) + 1
            if "satfinite" in rounding and wanted & 0x3FFFF == TF32.infinity:
                wanted -= 1
            wanted <<= 13
        elif math.isnan(value):
            cut = (bits & 0xFFFFE000) - (0x2000 if "satfinite" in rounding else 0)
            wanted = cut if "rna" in rounding else 0x7FFFE000  # as recorded on an H200
        else:
            wanted = (bits & 0x80000000) | (0x7F7FE000 if "satfinite" in rounding else 0x7F800000)
        if "relu" in rounding and wanted >> 31 and value == value:
            wanted = 0
        assert result == wanted, (hex(bits), rounding)


@pytest.mark.parametrize(("kind", "low", "high"), [("s8", -128, 127), ("u8", 0, 255), ("s16", -32768, 32767)])
def test_packing_clamps(kind: str, low: int, high: int) -> None:
    a = array([0, 1, -1, 127, 128, -129, 255, 256, 70000, -70000], np.int64).astype(np.int32).view(np.uint32)
    b = a[::-1].copy()
    width = int(kind[1:])
    third = ", {}" if width == 8 else ""
    below = [np.full(a.size, 0xABCD1234, np.uint32)] if width == 8 else []
    form = f"cvt.pack.sat.{kind}.s32{'.b32' if below else ''} {{}}, {{}}, {{}}{third}"
    got = apply(form, a, b, *below, result=np.uint32)
    mask = (1 << width) - 1
    pairs = [
        (max(low, min(high, x)) & mask, max(low, min(high, y)) & mask)
        for x, y in zip(a.view(np.int32).tolist(), b.view(np.int32).tolist(), strict=True)
    ]
    wanted = [x << width | y | (0x12340000 if below else 0) for x, y in pairs]
    assert got.tolist() == wanted
