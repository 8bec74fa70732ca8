"""Logic, shifts and bit fields: and, or, xor, not, shl, shr, shf, bfe, bfi, popc, clz, brev, prmt, lop3."""

from __future__ import annotations

from functools import partial

import numpy as np

from cutesmith_evaluator.emulator import integers
from cutesmith_evaluator.emulator.kinds import BITS, BOOL, DTYPES, U32, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation, same
from cutesmith_evaluator.emulator.ptx import Immediate

_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_WORDS = ("b32", "b64")
_PERMUTATIONS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def logic(words: Words) -> Operation:
    dtype = DTYPES[words.kind((*BITS, "pred"))]
    words.done()
    return same(_LOGIC[words.name], dtype, 2)


def negated(words: Words) -> Operation:
    dtype = DTYPES[words.kind((*BITS, "pred"))]
    words.done()
    return same(np.logical_not if dtype == BOOL else np.invert, dtype, 1)


def shift(words: Words) -> Operation:
    """shl and shr; the amount is an unsigned 32-bit value whatever the type."""
    kinds = BITS if words.name == "shl" else (*BITS, "u16", "s16", "u32", "s32", "u64", "s64")
    dtype = DTYPES[words.kind(kinds)]
    words.done()
    function = integers.shift_left if words.name == "shl" else integers.shift_right
    return Operation(function, (dtype, U32), (dtype,))


def funnel(words: Words) -> Operation:
    left = words.one_of(("l", "r")) == "l"
    wrap = words.one_of(("wrap", "clamp")) == "wrap"
    words.kind(("b32",))
    words.done()
    return same(partial(integers.funnel, left=left, wrap=wrap), U32, 3)


def field(words: Words) -> Operation:
    """bfe and bfi."""
    if words.name == "bfe":
        dtype = DTYPES[words.kind(("u32", "s32", "u64", "s64"))]
        words.done()
        return Operation(integers.extract, (dtype, U32, U32), (dtype,))
    dtype = DTYPES[words.kind(_WORDS)]
    words.done()
    return Operation(integers.insert, (dtype, dtype, U32, U32), (dtype,))


def counted(words: Words) -> Operation:
    """popc and clz give a 32-bit count."""
    dtype = DTYPES[words.kind(_WORDS)]
    words.done()
    return Operation(integers.population if words.name == "popc" else integers.leading_zeros, (dtype,), (U32,))


def reverse(words: Words) -> Operation:
    dtype = DTYPES[words.kind(_WORDS)]
    words.done()
    return same(integers.reversed_bits, dtype, 1)


def complement(words: Words) -> Operation:
    """cnot: 1 for zero, else 0."""
    dtype = DTYPES[words.kind(("b16", *_WORDS))]
    words.done()
    return same(lambda a: (a == 0).astype(dtype), dtype, 1)


def permute(words: Words) -> Operation:
    """prmt; the other modes than the usual one have the selectors of their four cases in a table."""
    words.kind(("b32",))
    mode = words.one_of(tuple(_PERMUTATIONS), "")
    words.done()
    if not mode:
        return same(integers.permute, U32, 3)
    selectors = np.array(_PERMUTATIONS[mode], np.uint32)
    return same(lambda a, b, c: integers.permute(a, b, selectors[c & np.uint32(3)]), U32, 3)


def lookup(words: Words) -> Operation:
    words.kind(("b32",))
    words.done()
    table = words.instruction.operands[-1]
    if not isinstance(table, Immediate):
        raise unsupported(words.instruction)
    return same(lambda a, b, c, _: integers.lookup(a, b, c, table.bits & 0xFF), U32, 4)
