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


def permute(words: Words) -> Operation:
    words.kind(("b32",))
    words.done()
    return same(integers.permute, U32, 3)


def lookup(words: Words) -> Operation:
    words.kind(("b32",))
    words.done()
    table = words.instruction.operands[-1]
    if not isinstance(table, Immediate):
        raise unsupported(words.instruction)
    return same(lambda a, b, c, _: integers.lookup(a, b, c, table.bits & 0xFF), U32, 4)
