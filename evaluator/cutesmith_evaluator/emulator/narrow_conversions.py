"""cvt to and from tf32 and pairs of 8-bit floats, and cvt.pack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import eighths, halves
from cutesmith_evaluator.emulator.kinds import DTYPES, U16, U32, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation
from cutesmith_evaluator.emulator.rounding import F32

Function = Callable[..., Any]

_EIGHTHS = ("e4m3x2", "e5m2x2")
NAMES = ("tf32", "pack", *_EIGHTHS)  # what is converted here
_CUT = np.uint32(0x1FFF)  # the bits of a float32 that tf32 has not
_LARGEST_TF32, _NAN_TF32 = np.uint32(0x7F7FE000), np.uint32(0x7FFFE000)


def convert(words: Words) -> Operation:
    if words.flag("pack"):
        return _pack(words)
    if words.instruction.words[-1] in _EIGHTHS:
        return _from_eighths(words)
    if words.instruction.words[-2] == "tf32":
        return _to_tf32(words)
    return _to_eighths(words)


def _to_tf32(words: Words) -> Operation:
    """cvt.rna{.satfinite}.tf32.f32, and in the roundings rn and rz, with .relu."""
    rounding = words.one_of(("rna", "rn", "rz"))
    finite, relu = words.flag("satfinite"), words.flag("relu")
    words.one_of(("tf32",))
    words.kind(("f32",))
    words.done()

    def run(values: Any) -> Any:
        bits = np.asarray(values).view(np.uint32)
        size = bits & np.uint32(0x7FFFFFFF)
        if rounding == "rna":
            size = size + np.uint32(0x1000)
        elif rounding == "rn":
            size = size + np.uint32(0xFFF) + ((size >> np.uint32(13)) & np.uint32(1))
        size = size & ~_CUT
        size = np.where(np.isinf(values), np.uint32(0x7F800000), size)
        if finite:
            size = np.minimum(size, _LARGEST_TF32)
        result = size | (bits & np.uint32(0x80000000))
        if relu:
            result = np.where(bits >> np.uint32(31), np.uint32(0), result)
        if rounding != "rna":
            return np.where(np.isnan(values), _NAN_TF32, result)
        # An H200 takes a NaN of rna for a number: it is cut, and is made smaller for satfinite, as infinity is.
        return np.where(np.isnan(values), (bits & ~_CUT) - np.uint32(0x2000 if finite else 0), result)

    return Operation(run, (DTYPES["f32"],), (U32,))


def _to_eighths(words: Words) -> Operation:
    """Of two float32, the first on top, or of a pair of float16."""
    words.one_of(("rn",))
    words.one_of(("satfinite",))
    relu = words.flag("relu")
    kind = words.one_of(_EIGHTHS).removesuffix("x2")
    source = words.kind(("f32", "f16x2"))
    words.done()

    def run(upper: Any, lower: Any) -> Any:
        high, low = (eighths.narrow(_kept(value) if relu else value, kind) for value in (upper, lower))
        return low.astype(U16) | (high.astype(U16) << np.uint16(8))

    def run_pair(pair: Any) -> Any:
        low, high = (halves.widen(part, "f16") for part in halves.halves(pair))
        return run(high, low)

    if source == "f32":
        return Operation(run, (DTYPES["f32"],) * 2, (U16,))
    return Operation(run_pair, (U32,), (U16,))


def _kept(values: Any) -> Any:
    """Without what is negative; NaN stays."""
    return np.where((values > 0) | np.isnan(values), values, F32(0))


def _from_eighths(words: Words) -> Operation:
    words.one_of(("rn",))
    relu = words.flag("relu")
    words.kind(("f16x2",))
    kind = words.one_of(_EIGHTHS).removesuffix("x2")
    words.done()

    def run(pair: Any) -> Any:
        parts = [eighths.widen(part, kind) for part in (pair & np.uint16(0xFF), pair >> np.uint16(8))]
        low, high = (halves.narrow(_kept(part) if relu else part, "f16") for part in parts)
        return halves.packed(low, high)

    return Operation(run, (U16,), (U32,))


def _pack(words: Words) -> Operation:
    """cvt.pack.sat: two clamped integers, the first above the second; bytes below the lower half of a third operand."""
    words.one_of(("sat",))
    kind = words.one_of(("u16", "s16", "u8", "s8"))
    words.kind(("s32",))
    third = words.one_of(("b32",), "") == "b32"
    words.done()
    dtype = DTYPES[kind]
    width, low, high = 8 * dtype.itemsize, np.iinfo(dtype).min, np.iinfo(dtype).max
    if third != (width == 8):
        raise unsupported(words.instruction)

    def run(a: Any, b: Any, *below: Any) -> Any:
        parts = [np.clip(each, low, high).view(np.uint32) & np.uint32((1 << width) - 1) for each in (b, a)]
        both = parts[0] | (parts[1] << np.uint32(width))
        return both | (below[0] << np.uint32(16)) if below else both

    signed = DTYPES["s32"]
    return Operation(run, (signed, signed, U32) if third else (signed, signed), (U32,))
