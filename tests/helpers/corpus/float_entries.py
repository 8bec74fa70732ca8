"""float32 and float64 arithmetic in every rounding, and the `.approx` functions within the manual's bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from corpus.checks import Check, close
from corpus.entry import Entry, applied, instruction
from corpus.values import operands

_ROUNDINGS = ("rn", "rz", "rm", "rp")
_ULP = 2.0**-23  # the most that one unit in the last place is of a float32
_TINY = 2.0**-149


def entries() -> Iterator[Entry]:
    yield from _single()
    yield from _single_signs()
    yield from _double()
    yield from _approximate()
    yield from _least()
    yield _nans()


def _single() -> Iterator[Entry]:
    for name, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        roundings = (*_ROUNDINGS, "") if name != "fma" else _ROUNDINGS
        for rounding, ftz, sat in product(roundings, ("", "ftz"), ("", "sat")):
            opcode = ".".join(word for word in (name, rounding, ftz, sat, "f32") if word)
            yield applied(opcode, ["f32"] * count, "f32")
    for name, count in (("div", 2), ("rcp", 1), ("sqrt", 1)):
        for rounding, ftz in product(_ROUNDINGS, (".", ".ftz.")):
            yield applied(f"{name}.{rounding}{ftz}f32", ["f32"] * count, "f32")
    yield applied("mad.rn.f32", ["f32"] * 3, "f32")


def _single_signs() -> Iterator[Entry]:
    for name, ftz in product(("neg", "abs"), (".", ".ftz.")):
        yield applied(f"{name}{ftz}f32", ["f32"], "f32")
    for name, ftz, nan, sign in product(("min", "max"), (".", ".ftz."), ("", "NaN."), ("", "xorsign.abs.")):
        yield applied(f"{name}{ftz}{nan}{sign}f32", ["f32", "f32"], "f32")
    for kind in ("f32", "f64"):
        yield applied(f"copysign.{kind}", [kind, kind], kind)
        for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield applied(f"testp.{what}.{kind}", [kind], "pred")


def _double() -> Iterator[Entry]:
    for rounding in _ROUNDINGS:
        for name in ("add", "sub", "mul", "div"):
            yield applied(f"{name}.{rounding}.f64", ["f64", "f64"], "f64")
        for name in ("rcp", "sqrt"):
            yield applied(f"{name}.{rounding}.f64", ["f64"], "f64")
        yield applied(f"fma.{rounding}.f64", ["f64"] * 3, "f64")
    for name in ("add", "sub", "mul"):
        yield applied(f"{name}.f64", ["f64", "f64"], "f64")
    for name in ("neg", "abs"):
        yield applied(f"{name}.f64", ["f64"], "f64")
    for name in ("min", "max"):
        yield applied(f"{name}.f64", ["f64", "f64"], "f64")


def _approximate() -> Iterator[Entry]:
    """The manual's errors against the exact value, and half a unit more for the emulator's rounding of it."""
    bounds = {
        "rcp.approx": close("f32", relative=1.5 * _ULP, absolute=_TINY),
        "sqrt.approx": close("f32", relative=1.5 * _ULP, absolute=_TINY),
        "rsqrt.approx": close("f32", relative=2**-22.9 + _ULP / 2),
        "ex2.approx": close("f32", relative=2.5 * _ULP, absolute=_TINY),
        "lg2.approx": close("f32", relative=2.0**-22 + _ULP / 2, absolute=2.0**-22),
        "tanh.approx": close("f32", relative=2.0**-11 + 2.0**-12),
    }
    for (name, check), ftz in product(bounds.items(), (".", ".ftz.")):
        if name != "tanh.approx" or ftz == ".":
            yield applied(f"{name}{ftz}f32", ["f32"], "f32", check=check)
    for name, ftz in product(("sin.approx", "cos.approx"), (".", ".ftz.")):
        yield _of_angle(f"{name}{ftz}f32")
    for name, ftz in product(("div.approx", "div.full"), (".", ".ftz.")):
        yield _quotient(f"{name}{ftz}f32")
    reduced = close("f64", relative=2.0**-19)
    yield applied("rcp.approx.ftz.f64", ["f64"], "f64", check=reduced)
    yield applied("rsqrt.approx.ftz.f64", ["f64"], "f64", check=reduced)
    yield applied("rsqrt.approx.f64", ["f64"], "f64", check=close("f64", relative=2.0**-51))  # twice what is seen


def _of_angle(opcode: str) -> Entry:
    """Within ±2π; beyond, the manual's bound grows with the argument."""
    angles = operands(["u32"], opcode, 512)[0].astype("f8") / 2.0**32 * 4 * 3.14159 - 2 * 3.14159
    check: Check = close("f32", absolute=2**-20.5 + 2.0**-22)
    return instruction(opcode, f"{opcode} {{}}, {{}}", [angles.astype("f4").view("u4")], "u4", check=check)


def _quotient(opcode: str) -> Entry:
    """Two units in the last place for divisors in [2^-126, 2^126]; tests of others would say nothing."""
    over, by = operands(["f32", "f32"], opcode, 1024)
    size = (by >> 23) & 0xFF
    by[(size < 64) | (size > 190)] = 0x40490FDB
    over[((over >> 23) & 0xFF) < 64] = 0x3F8CCCCD
    over[((over >> 23) & 0xFF) > 190] = 0x3F8CCCCD
    return instruction(opcode, f"{opcode} {{}}, {{}}, {{}}", [over, by], "u4", check=close("f32", relative=2.5 * _ULP))


def _least() -> Iterator[Entry]:
    """Products a little below the least normal number: does .ftz look at them before or after they are rounded?"""
    place = np.arange(1, 129, dtype=np.uint32)
    tiny, near = np.uint32(0x00800000) + (place << np.uint32(6)), np.uint32(0x3F800000) - (place << np.uint32(7))
    for rounding in ("rn", "rp"):
        opcode = f"mul.{rounding}.ftz.f32"
        inputs = [tiny, near]
        yield instruction(f"{opcode} below the least normal number", f"{opcode} {{}}, {{}}, {{}}", inputs, "u4")


def _nans() -> Entry:
    """Every choice of a number and NaNs that differ, for each of the three operands, with both signs of the number."""
    numbers = np.arange(128, dtype=np.uint64)
    inputs = []
    for place in range(3):
        which = (numbers >> np.uint64(2 * place)) & np.uint64(3)
        nan = (
            np.uint64(0x7FF0 << 48)
            | np.uint64(place + 1) << np.uint64(8)
            | which
            | (which & np.uint64(1)) << np.uint64(63)
        )
        number = np.uint64(0x3FF0 << 48) | (numbers >> np.uint64(6)) << np.uint64(63)
        inputs.append(np.where(which == 0, number, nan))
    return instruction("fma.rn.f64 of NaNs", "fma.rn.f64 {}, {}, {}, {}", inputs, "u8")
