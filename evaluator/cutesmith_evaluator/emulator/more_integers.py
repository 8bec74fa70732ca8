"""Integer instructions that compilers seldom emit: mul24, mad24, sad, dp4a, dp2a, bfind, szext, bmsk."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import integers
from cutesmith_evaluator.emulator.kinds import DTYPES, U32, Words
from cutesmith_evaluator.emulator.operation import Operation, same

Ints = Any
PAIRS = ("u16x2", "s16x2")


def product24(words: Words) -> Operation:
    """mul24 and mad24: of the lower 24 bits; bits 0 to 31 (lo) or 16 to 47 (hi) of the product."""
    part = words.one_of(("lo", "hi"))
    dtype = DTYPES[words.kind(("u32", "s32"))]
    words.done()
    shift = 0 if part == "lo" else 16
    wide = np.dtype(f"{dtype.kind}8")

    def product(a: Ints, b: Ints) -> Ints:
        whole = (a << dtype.type(8) >> dtype.type(8)).astype(wide) * (b << dtype.type(8) >> dtype.type(8)).astype(wide)
        return (whole >> wide.type(shift)).astype(dtype)

    if words.name == "mul24":
        return same(product, dtype, 2)
    return same(lambda a, b, c: product(a, b) + c, dtype, 3)


def distance(words: Words) -> Operation:
    """sad: c + |a - b|."""
    dtype = DTYPES[words.kind(("u16", "s16", "u32", "s32", "u64", "s64"))]
    words.done()
    unsigned = np.dtype(f"u{dtype.itemsize}")

    def run(a: Ints, b: Ints, c: Ints) -> Ints:
        larger, smaller = np.maximum(a, b).view(unsigned), np.minimum(a, b).view(unsigned)
        return c + (larger - smaller)

    return Operation(run, (dtype, dtype, unsigned), (unsigned,))


def dot4(words: Words) -> Operation:
    """dp4a: four products of bytes, and c."""
    kinds = _two_kinds(words)
    words.done()
    return _dot(kinds, lambda a, b: [(_piece(a, 8, n, kinds[0]), _piece(b, 8, n, kinds[1])) for n in range(4)])


def dot2(words: Words) -> Operation:
    """dp2a: two products of halves of a with bytes of b, its lower or its upper two, and c."""
    first = 0 if words.one_of(("lo", "hi")) == "lo" else 2
    kinds = _two_kinds(words)
    words.done()
    return _dot(kinds, lambda a, b: [(_piece(a, 16, n, kinds[0]), _piece(b, 8, first + n, kinds[1])) for n in range(2)])


def _two_kinds(words: Words) -> tuple[str, str]:
    return words.kind(("u32", "s32")), words.kind(("u32", "s32"))


def _dot(kinds: tuple[str, str], pairs: Any) -> Operation:
    def run(a: Ints, b: Ints, c: Ints) -> Ints:
        for left, right in pairs(a, b):
            c = c + (left * right).view(np.uint32)
        return c

    return Operation(run, (U32, U32, U32), (U32,))


def _piece(word: Ints, width: int, number: int, kind: str) -> Ints:
    """A part of the word, extended by its sign or by zeros, as int32."""
    up = np.uint32(32 - width * (number + 1))
    moved = word << up
    signed = moved.view(np.int32) >> np.int32(32 - width)
    return signed if kind == "s32" else (moved >> np.uint32(32 - width)).view(np.int32)


def find(words: Words) -> Operation:
    """bfind: the place of the highest bit that is set (for negative numbers: clear), all ones where there is none."""
    shift_amount = words.flag("shiftamt")
    dtype = DTYPES[words.kind(("u32", "s32", "u64", "s64"))]
    words.done()
    last = np.uint32(8 * dtype.itemsize - 1)
    unsigned = np.dtype(f"u{dtype.itemsize}")

    def run(a: Ints) -> Ints:
        size = np.where(a < 0, ~a, a).view(unsigned) if dtype.kind == "i" else a
        zeros = integers.leading_zeros(np.asarray(size))
        place = zeros if shift_amount else last - zeros
        return np.where(size == 0, np.uint32(0xFFFFFFFF), place)

    return Operation(run, (dtype,), (U32,))


def extend(words: Words) -> Operation:
    """szext: the lower b bits of a, extended by their sign or by zeros."""
    wrap = words.one_of(("clamp", "wrap")) == "wrap"
    dtype = DTYPES[words.kind(("u32", "s32"))]
    words.done()

    def run(a: Ints, b: Ints) -> Ints:
        count = b & np.uint32(31) if wrap else np.minimum(b, np.uint32(32))
        return integers.extract(a, np.uint32(0) * count, count)

    return Operation(run, (dtype, U32), (dtype,))


def pairs(words: Words) -> Operation:
    """add, min and max of two 16-bit integers in one register."""
    relu = words.flag("relu")
    kind = words.one_of(PAIRS)
    words.done()
    function = {"add": np.add, "min": np.minimum, "max": np.maximum}[words.name]
    half = np.dtype("i2" if kind[0] == "s" else "u2")

    def run(a: Ints, b: Ints) -> Ints:
        parts = [np.ascontiguousarray(np.broadcast_to(each, np.broadcast(a, b).shape)).view(half) for each in (a, b)]
        found = function(*parts)
        return (np.maximum(found, half.type(0)) if relu else found).view(np.uint32).reshape(np.broadcast(a, b).shape)

    return same(run, U32, 2)


def mask(words: Words) -> Operation:
    """bmsk: b ones from bit a on."""
    wrap = words.one_of(("clamp", "wrap")) == "wrap"
    words.kind(("b32",))
    words.done()

    def run(a: Ints, b: Ints) -> Ints:
        place, count = (a & np.uint32(31), b & np.uint32(31)) if wrap else (a, b)
        ones = np.where(count >= 32, np.uint32(0xFFFFFFFF), integers.shift_left(np.uint32(1), count) - np.uint32(1))
        return integers.shift_left(ones, place)

    return same(run, U32, 2)
