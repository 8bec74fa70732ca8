"""cvt: between all types, in all roundings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from corpus.entry import Entry, applied, instruction
from corpus.values import Array, bits, operands, width_of

_INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_NUMPY = {kind: ("i" if kind[0] == "s" else "u") + str(int(kind[1:]) // 8) for kind in _INTEGERS}
_FLOATS = ("f16", "bf16", "f32", "f64")
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")


def entries() -> Iterator[Entry]:
    yield from _integers()
    yield from _from_integers()
    yield from _to_integers()
    yield from _floats()
    yield from _pairs()
    yield from _tf32()
    yield from _fp8()
    yield from _packs()


def _integers() -> Iterator[Entry]:
    for to, source in product(_INTEGERS, _INTEGERS):
        if to != source:
            yield applied(f"cvt.{to}.{source}", [source], to, count=256)
            if not _holds(to, source):  # ptxas refuses to saturate what cannot overflow
                yield applied(f"cvt.sat.{to}.{source}", [source], to, count=256)
    for to, source in product(("u8", "s8", "u16", "s16"), ("u32", "s32")):
        inputs = operands([source], f"cvt {to} {source} wide", 256)
        yield instruction(f"cvt.{to}.{source} into 32 bits", f"cvt.{to}.{source} {{}}, {{}}", inputs, "u4")


def _holds(to: str, source: str) -> bool:
    """Whether the type `to` has every value of the type `source`."""
    wide, narrow = np.iinfo(_NUMPY[to]), np.iinfo(_NUMPY[source])
    return bool(wide.min <= narrow.min and narrow.max <= wide.max)


def _exists(kind: str, integer: str) -> bool:
    """There are no conversions between bfloat16 and 8-bit integers."""
    return not (kind == "bf16" and integer in ("u8", "s8"))


def _from_integers() -> Iterator[Entry]:
    for to, source, rounding in product(_FLOATS, _INTEGERS, _ROUNDINGS):
        if _exists(to, source):
            yield applied(f"cvt.{rounding}.{to}.{source}", [source], to, count=256)
    for source in ("u32", "s32", "s64"):
        yield applied(f"cvt.rn.sat.f32.{source}", [source], "f32", count=256)


def _to_integers() -> Iterator[Entry]:
    for to, source, rounding in product(_INTEGERS, _FLOATS, _TO_INTEGER):
        if _exists(source, to):
            yield _of_float(f"cvt.{rounding}.{to}.{source}", source, to, 256)
        if source == "f32" and rounding in ("rni", "rzi"):
            yield _of_float(f"cvt.{rounding}.ftz.{to}.f32", source, to, 256)
    for to in _INTEGERS:
        yield _of_float(f"cvt.rzi.sat.{to}.f32", "f32", to, 256)


def _floats() -> Iterator[Entry]:
    for kind in ("f16", "f32", "f64"):
        for rounding in _TO_INTEGER:
            yield _of_float(f"cvt.{rounding}.{kind}.{kind}", kind, kind)
    for rounding in _TO_INTEGER:
        yield _of_float(f"cvt.{rounding}.ftz.f32.f32", "f32", "f32")
    yield from (applied(f"cvt{words}f32.f32", ["f32"], "f32") for words in (".ftz.", ".sat.", ".ftz.sat."))
    yield from (applied(f"cvt.f32.{kind}", [kind], "f32", count=2048) for kind in ("f16", "bf16"))
    yield from (applied(f"cvt.f64.{kind}", [kind], "f64") for kind in ("f16", "bf16", "f32"))
    for words in (".ftz.f32.f16", ".sat.f32.f16", ".ftz.f64.f32", ".sat.f64.f32"):
        source = words.rpartition(".")[2]
        yield applied(f"cvt{words}", [source], words.split(".")[-2])
    for rounding in _ROUNDINGS:
        for words in (f"{rounding}.f32.f64", f"{rounding}.ftz.f32.f64", f"{rounding}.f16.f64", f"{rounding}.bf16.f64"):
            yield _of_float(f"cvt.{words}", "f64", words.split(".")[-2], 1024)
    for words in (*_ROUNDINGS, "rn.relu", "rz.relu"):
        yield _of_float(f"cvt.{words}.f16.f32", "f32", "f16", 1024)
        yield _of_float(f"cvt.{words}.bf16.f32", "f32", "bf16", 1024)
    for words in ("rn.ftz", "rz.ftz", "rn.sat"):
        yield _of_float(f"cvt.{words}.f16.f32", "f32", "f16", 1024)
    yield applied("cvt.rn.f16.bf16", ["bf16"], "f16", count=1024)
    yield applied("cvt.rn.bf16.f16", ["f16"], "bf16", count=1024)


def _pairs() -> Iterator[Entry]:
    for kind, rounding, relu in product(("f16x2", "bf16x2"), ("rn", "rz"), ("", "relu.")):
        opcode = f"cvt.{rounding}.{relu}{kind}.f32"
        inputs = [_midpoints(f"{opcode}/{side}", "f32", 1024) for side in "ab"]
        yield instruction(opcode, f"{opcode} {{}}, {{}}, {{}}", inputs, "u4")


def _tf32() -> Iterator[Entry]:
    for words in ("rna", "rna.satfinite", "rn", "rn.relu", "rz", "rz.relu"):
        yield _of_float(f"cvt.{words}.tf32.f32", "f32", "b32", 1024)


def _fp8() -> Iterator[Entry]:
    for kind, relu in product(("e4m3x2", "e5m2x2"), ("", "relu.")):
        opcode = f"cvt.rn.satfinite.{relu}{kind}.f32"
        inputs = [_midpoints(f"{opcode}/{side}", "f32", 1024) for side in "ab"]
        yield instruction(opcode, f"{opcode} {{}}, {{}}, {{}}", inputs, "u2")
        opcode = f"cvt.rn.satfinite.{relu}{kind}.f16x2"
        yield applied(opcode, ["f16x2"], "b16", count=2048)
        opcode = f"cvt.rn.{relu}f16x2.{kind}"
        every = np.arange(256, dtype=np.uint16)
        yield instruction(opcode, f"{opcode} {{}}, {{}}", [every | (every[::-1] << np.uint16(8))], "u4")


def _packs() -> Iterator[Entry]:
    for kind in ("u16", "s16"):
        yield applied(f"cvt.pack.sat.{kind}.s32", ["s32", "s32"], "b32")
    for kind in ("u8", "s8"):
        yield applied(f"cvt.pack.sat.{kind}.s32.b32", ["s32", "s32", "b32"], "b32", count=1024)


def _of_float(opcode: str, source: str, to: str, count: int = 512) -> Entry:
    result = np.dtype(f"u{width_of(to) // 8}")
    return instruction(opcode, f"{opcode} {{}}, {{}}", [_midpoints(opcode, source, count)], result)


def _midpoints(name: str, source: str, count: int) -> Array:
    """Specials;
    then floats whose tail is a midpoint or next to one, over sizes at which shorter types begin and end."""
    found = operands([source], name, count)[0]
    first = min(64, count // 2)
    raw, tail = bits(f"{name}/size", count), bits(f"{name}/cut", count)
    exponent, mantissa = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}[source]
    bias, top = (1 << (exponent - 1)) - 1, (1 << exponent) - 2
    low, high = max(1, bias - 28), min(top, bias + 66)
    wide = raw % np.uint64(4) == 0  # a quarter anywhere, for the range of bfloat16 and of 64-bit integers
    size = np.where(
        wide,
        np.uint64(1) + (raw >> np.uint64(8)) % np.uint64(top),
        np.uint64(low) + (raw >> np.uint64(8)) % np.uint64(high - low),
    )
    drop = np.uint64(1) + tail % np.uint64(mantissa)
    half = np.uint64(1) << (drop - np.uint64(1))
    near = (half + (tail >> np.uint64(32)) % np.uint64(3) - np.uint64(1)) & ((np.uint64(1) << drop) - np.uint64(1))
    fraction = (((raw >> np.uint64(12)) & np.uint64((1 << mantissa) - 1)) >> drop << drop) | near
    made = ((raw >> np.uint64(63)) << np.uint64(exponent + mantissa)) | (size << np.uint64(mantissa)) | fraction
    found[first:] = made.astype(found.dtype)[first:]
    return found
