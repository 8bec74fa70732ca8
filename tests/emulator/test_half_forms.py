"""Modifiers of half-precision and other seldom emitted float instructions, against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_numbers import BF16, F16, F32, F64, Format, decode, encode
from ptx_kernels import apply

FORMATS = {"f16": F16, "bf16": BF16}
HALVES = st.one_of(
    st.integers(0, 0xFFFF), st.sampled_from([0, 0x8000, 1, 0x83FF, 0x400, 0x3C00, 0x3F80, 0xBC00, 0x7C00, 0xFE00])
)
ROWS = st.lists(st.tuples(HALVES, HALVES, HALVES), min_size=64, max_size=64)


def columns(rows: list[tuple[int, int, int]]) -> list[np.ndarray]:
    return [np.array(column, np.uint16) for column in zip(*rows, strict=True)]


def numbers(row: tuple[int, int, int], form: Format, *, ftz: bool = False) -> list[Fraction] | None:
    """None where one is no number."""
    values = [decode(bits & form.sign if ftz and not bits & form.infinity else bits, form) for bits in row]
    return values if all(isinstance(value, Fraction) for value in values) else None  # type: ignore[return-value]


def finished(value: Fraction, form: Format, *, sat: bool = False, relu: bool = False, ftz: bool = False) -> int:
    """Bits of a result that is not zero, or zero without its sign."""
    if sat:
        value = min(max(value, Fraction(0)), Fraction(1))
    bits = encode(value, form)
    if ftz and not bits & form.infinity:
        bits = 0
    return 0 if relu and bits & form.sign else bits


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, "f16") for name in ("add.rn.sat", "sub.rn.ftz", "mul.rn.ftz.sat", "fma.rn.sat", "fma.rn.ftz.relu")]
    + [("fma.rn.relu", "bf16")],
)
@given(rows=ROWS)
@settings(max_examples=10, deadline=None)
def test_clamped_and_flushed(name: str, kind: str, rows: list[tuple[int, int, int]]) -> None:
    form, words = FORMATS[kind], name.split(".")
    count = 3 if words[0] == "fma" else 2
    does = {
        "add": lambda a, b, c: a + b,
        "sub": lambda a, b, c: a - b,
        "mul": lambda a, b, c: a * b,
        "fma": lambda a, b, c: a * b + c,
    }[words[0]]
    got = apply(f"{name}.{kind} {', '.join(['{}'] * (count + 1))}", *columns(rows)[:count], result=np.uint16)
    flags = {word: word in words for word in ("sat", "relu", "ftz")}
    for row, result in zip(rows, got.tolist(), strict=True):
        values = numbers(row, form, ftz=flags["ftz"])
        if values is not None:
            wanted = finished(does(*values), form, **flags)
            assert result == wanted or (result & ~form.sign == wanted == 0 and not flags["sat"]), (row, name)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["min", "max"])
@given(rows=ROWS)
@settings(max_examples=10, deadline=None)
def test_extremes_of_magnitudes(name: str, kind: str, rows: list[tuple[int, int, int]]) -> None:
    """The sign is the product's."""
    a, b, _ = columns(rows)
    got = apply(f"{name}.xorsign.abs.{kind} {{}}, {{}}, {{}}", a, b, result=np.uint16)
    choose = min if name == "min" else max
    for (x, y, z), result in zip(rows, got.tolist(), strict=True):
        if numbers((x, y, z), FORMATS[kind]) is not None:
            assert result == choose(x & 0x7FFF, y & 0x7FFF) | (x ^ y) & 0x8000


@given(rows=ROWS)
@settings(max_examples=10, deadline=None)
def test_signs_flush_subnormals(rows: list[tuple[int, int, int]]) -> None:
    a, _, _ = columns(rows)
    negated = apply("neg.ftz.f16 {}, {}", a, result=np.uint16)
    for bits, result in zip(a.tolist(), negated.tolist(), strict=True):
        if numbers((bits, 0, 0), F16) is not None:
            assert result == (bits ^ 0x8000 if bits & 0x7C00 else (bits ^ 0x8000) & 0x8000)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@given(rows=ROWS)
@settings(max_examples=10, deadline=None)
def test_between_half_formats_and_from_integers(mode: str, rows: list[tuple[int, int, int]]) -> None:
    a, b, _ = columns(rows)
    across = apply(f"cvt.{mode}.f16.bf16 {{}}, {{}}", a, result=np.uint16)
    whole = (a.astype(np.uint32) << np.uint32(16) | b).astype(np.uint32)
    from_integer = apply(f"cvt.{mode}.bf16.s32 {{}}, {{}}", whole, result=np.uint16)
    for bits, word, half, integer in zip(
        a.tolist(), whole.tolist(), across.tolist(), from_integer.tolist(), strict=True
    ):
        value = decode(bits, BF16)
        if isinstance(value, Fraction):
            assert half == encode(value, F16, mode, negative_zero=bool(bits >> 15))
        assert integer == encode(Fraction(word - (word >> 31 << 32)), BF16, mode)


WIDE = st.one_of(
    st.integers(0, 2**64 - 1),
    st.builds(lambda bits, low: (1 << bits) + low & 2**64 - 1, st.integers(20, 64), st.integers(-2, 2)),
    st.builds(lambda head, bits: (2 * head + 1) << bits & 2**64 - 1, st.integers(0, 2**11), st.integers(0, 53)),
)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("to", ["f16", "bf16", "f32", "f64"])
@given(values=st.lists(WIDE, min_size=64, max_size=64))
@settings(max_examples=8, deadline=None)
def test_from_integers_of_64_bits(to: str, mode: str, values: list[int]) -> None:
    form = {**FORMATS, "f32": F32, "f64": F64}[to]
    result = np.dtype(f"u{form.bits // 8}")
    array = np.array(values, np.uint64)
    unsigned = apply(f"cvt.{mode}.{to}.u64 {{}}, {{}}", array, result=result)
    assert unsigned.tolist() == [encode(Fraction(value), form, mode) for value in values]
    signed = apply(f"cvt.{mode}.{to}.s64 {{}}, {{}}", array, result=result)
    assert signed.tolist() == [encode(Fraction(value - (value >> 63 << 64)), form, mode) for value in values]


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("cvt.sat.s8.s32 {}, {}", [127, -128, 5, -1, 127, -128]),
        ("cvt.sat.u16.s32 {}, {}", [300, 0, 5, 0, 65535, 0]),
        ("cvt.rn.sat.f32.s32 {}, {}", [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
    ],
)
def test_saturation(form: str, wanted: list[float]) -> None:
    values = np.array([300, -300, 5, -1, 2**31 - 1, -(2**31)], np.int32).view(np.uint32)
    if "f32" in form:
        assert apply(form, values, result=np.float32).tolist() == wanted
    else:
        kind = np.int16 if "s8" in form else np.uint16
        assert apply(form, values, result=kind).tolist() == wanted


def test_set_and_slct() -> None:
    a, b = np.array([1, 2, -3, -4], np.int32).view(np.uint32), np.array([2, 1, -4, -3], np.int32).view(np.uint32)
    assert apply("set.lt.u32.s32 {}, {}, {}", a, b, result=np.uint32).tolist() == [0xFFFFFFFF, 0, 0, 0xFFFFFFFF]
    assert apply("set.lt.f32.s32 {}, {}, {}", a, b, result=np.float32).tolist() == [1, 0, 0, 1]
    chosen = apply("slct.b32.s32 {}, {}, {}, {}", a, b, a, result=np.uint32)
    assert chosen.tolist() == [*a[:2].tolist(), *b[2:].tolist()]
    pairs = np.array([0x3C004000, 0x40003C00], np.uint32)
    assert apply("set.lt.f16x2.f16x2 {}, {}, {}", pairs, pairs[::-1].copy(), result=np.uint32).tolist() == [
        0x3C000000,
        0x00003C00,
    ]


@pytest.mark.parametrize(("kind", "relative"), [("f16", 2.0**-9.9), ("bf16", 2.0**-7)])
def test_powers_keep_to_the_documented_error(kind: str, relative: float) -> None:
    values = np.linspace(-4, 4, 512).astype(np.float32)
    bits = (
        values.astype(np.float16).view(np.uint16) if kind == "f16" else (values.view(np.uint32) >> 16).astype(np.uint16)
    )
    form = "ex2.approx.f16 {}, {}" if kind == "f16" else "ex2.approx.ftz.bf16 {}, {}"
    for given_bits, result in zip(bits.tolist(), apply(form, bits, result=np.uint16).tolist(), strict=True):
        exact = 2.0 ** float(decode(given_bits, FORMATS[kind]))
        assert abs(float(decode(result, FORMATS[kind])) - exact) <= exact * relative


@given(rows=st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=32, max_size=32))
@settings(max_examples=10, deadline=None)
def test_extremes_of_magnitudes_in_single_precision(rows: list[tuple[int, int]]) -> None:
    a, b = (np.array(column, np.uint32) for column in zip(*rows, strict=True))
    got = apply("max.xorsign.abs.f32 {}, {}, {}", a, b, result=np.uint32)
    for (x, y), result in zip(rows, got.tolist(), strict=True):
        if isinstance(decode(x, F32), Fraction) and isinstance(decode(y, F32), Fraction):
            assert result == max(x & 0x7FFFFFFF, y & 0x7FFFFFFF) | (x ^ y) & 0x80000000
