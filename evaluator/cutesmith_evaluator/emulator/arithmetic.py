"""add, sub, mul, mad, fma, div, rem, min, max, neg, abs and the functions: their forms and types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import (
    approximations,
    float32,
    float64,
    float64_directed,
    half_forms,
    integers,
    more_integers,
)
from cutesmith_evaluator.emulator.kinds import DTYPES, HALVES, INTEGERS, ROUNDINGS, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation, same
from cutesmith_evaluator.emulator.rounding import Rounding, flushed, saturated

F32, F64 = DTYPES["f32"], DTYPES["f64"]
Function = Callable[..., Any]

_FLOAT = ("f32", "f64", *HALVES)
_SINGLE: dict[str, Function] = {
    "add": float32.add,
    "sub": float32.sub,
    "mul": float32.mul,
    "fma": float32.fma,
    "div": float32.div,
    "rcp": float32.rcp,
    "sqrt": float32.sqrt,
}
_DOUBLE: dict[str, Function] = {
    "add": float64.add,
    "sub": float64.sub,
    "mul": float64.mul,
    "fma": float64.fma,
    "div": float64.div,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
}
_INTEGER: dict[str, Function] = {"add": np.add, "sub": np.subtract}
_APPROXIMATE: dict[str, Function] = {
    "ex2": approximations.ex2,
    "lg2": approximations.lg2,
    "rsqrt": approximations.rsqrt,
    "tanh": approximations.tanh,
    "sin": approximations.sin,
    "cos": approximations.cos,
}
_SCALES = {"mul": (30, 0), "fma": (30, 0, 30), "div": (30, 0), "rcp": (-30,)}  # powers of two that scale the result
_ARGUMENTS = {"fma": 3, "rcp": 1, "sqrt": 1, **dict.fromkeys(_APPROXIMATE, 1)}


def arithmetic(words: Words) -> Operation:
    """add, sub, mul, fma, mad, div, rcp, sqrt."""
    if words.name == "add" and words.instruction.words[-1] in more_integers.PAIRS:
        return more_integers.pairs(words)
    if words.name in ("add", "sub") and words.instruction.words[-1] in INTEGERS:
        return _integer(words)
    if words.name in ("mul", "mad") and words.instruction.words[-1] in INTEGERS:
        return _product(words)
    if words.name == "div" and words.instruction.words[-1] in INTEGERS:
        return division(words)
    words.name = "fma" if words.name == "mad" else words.name
    return _floating(words)


def _integer(words: Words) -> Operation:
    sat = words.flag("sat")
    dtype = DTYPES[words.kind(("s32",) if sat else INTEGERS)]
    words.done()
    if sat:
        wide = _INTEGER[words.name]
        return same(lambda a, b: integers.clamped(wide(a.astype(np.int64), b.astype(np.int64)), dtype), dtype, 2)
    return same(_INTEGER[words.name], dtype, 2)


def _product(words: Words) -> Operation:
    """mul and mad: the lower half, the upper half or the whole product."""
    part = words.one_of(("lo", "hi", "wide"))
    sat = words.flag("sat")
    dtype = DTYPES[words.kind(("u16", "s16", "u32", "s32", "u64", "s64"))]
    words.done()
    if part == "wide" and dtype.itemsize == 8:
        raise unsupported(words.instruction)
    product: Function = {"lo": np.multiply, "hi": integers.high, "wide": integers.wide}[part]
    result = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}") if part == "wide" else dtype
    if sat:
        if (words.name, part, dtype) != ("mad", "hi", DTYPES["s32"]):
            raise unsupported(words.instruction)
        return same(lambda a, b, c: integers.clamped(product(a, b).astype(np.int64) + c, dtype), dtype, 3)
    if words.name == "mul":
        return Operation(product, (dtype, dtype), (result,))
    return Operation(lambda a, b, c: product(a, b) + c, (dtype, dtype, result), (result,))


def division(words: Words) -> Operation:
    dtype = DTYPES[words.kind(("u16", "s16", "u32", "s32", "u64", "s64"))]
    words.done()
    return same(integers.quotient if words.name == "div" else integers.remainder, dtype, 2)


def _floating(words: Words) -> Operation:
    approximate = words.flag("approx") or words.flag("full")
    rounding: Rounding = words.one_of(ROUNDINGS, "rn")  # type: ignore[assignment]
    ftz, sat, relu = words.flag("ftz"), words.flag("sat"), words.flag("relu")
    kind = words.kind(_FLOAT)
    words.done()
    count = _ARGUMENTS.get(words.name, 2)
    if kind in HALVES and rounding == "rn" and not (relu and words.name != "fma"):
        return half_forms.arithmetic(words, kind, ftz=ftz, sat=sat, relu=relu)
    if relu:
        raise unsupported(words.instruction)
    if kind == "f64" and rounding == "rn" and not (approximate or ftz or sat):
        return same(_DOUBLE[words.name], F64, count)
    if kind == "f64" and not (approximate or ftz or sat):
        return same(float64_directed.directed(words.name, rounding), F64, count)
    if kind == "f64" and approximate and ftz and words.name == "rcp":
        return same(approximations.rcp_double, F64, 1)
    if kind != "f32" or (approximate and words.name not in ("div", "rcp", "sqrt")):
        raise unsupported(words.instruction)
    return same(dressed(partial(_SINGLE[words.name], rounding=rounding), ftz, sat, _SCALES.get(words.name)), F32, count)


def dressed(function: Function, ftz: bool, sat: bool = False, scales: tuple[int, ...] | None = None) -> Function:
    """`function` of float32 with subnormals flushed on the way in and out, and the result clamped.

    `scales`: powers of two for the operands that make the result 2^30 times as large; None where no result is rounded
    up to the least normal number.
    """
    if not ftz and not sat:
        return function

    def run(*values: Any) -> Any:
        result = _flushing(function, values, scales) if ftz else function(*values)
        return saturated(result) if sat else result

    return run


def _flushing(function: Function, values: tuple[Any, ...], scales: tuple[int, ...] | None) -> Any:
    """A result below the least normal number is flushed, also where a subnormal one would be rounded up to it."""
    values = tuple(map(flushed, values))
    result = flushed(np.asarray(function(*values)))
    least = np.abs(result) == F32.type(2.0**-126)
    if scales is None or not least.any():
        return result
    scaled = function(*(value * F32.type(2.0**scale) for value, scale in zip(values, scales, strict=True)))
    return np.where(least & (np.abs(scaled) < F32.type(2.0**-96)), np.copysign(F32.type(0), result), result)


def function_of_one(words: Words) -> Operation:
    """ex2, lg2, rsqrt, tanh, sin, cos."""
    if not words.flag("approx"):
        raise unsupported(words.instruction)
    ftz = words.flag("ftz")
    kind = words.kind(("f32", "f64", *HALVES))
    words.done()
    if kind == "f64" and words.name == "rsqrt":
        return same(approximations.rsqrt_double_upper if ftz else approximations.rsqrt_double, F64, 1)
    if kind == "f64":
        raise unsupported(words.instruction)
    if kind in HALVES:
        return half_forms.approximate(words, kind, ftz=ftz)
    return same(dressed(_APPROXIMATE[words.name], ftz), F32, 1)


def negation(words: Words) -> Operation:
    """neg and abs."""
    ftz = words.flag("ftz")
    kind = words.kind(("s16", "s32", "s64", *_FLOAT))
    words.done()
    negative = words.name == "neg"
    if kind[0] == "s":
        return same(np.negative if negative else integers.magnitude, DTYPES[kind], 1)
    if kind == "f32":
        return same(dressed(float32.neg if negative else float32.absolute, ftz), F32, 1)
    if kind == "f64":
        return same(float64.neg if negative else float64.absolute, F64, 1)
    return half_forms.negation(words, kind, ftz=ftz)


def copysign(words: Words) -> Operation:
    kind = words.kind(("f32", "f64"))
    words.done()
    return same(float32.copysign if kind == "f32" else lambda a, b: np.copysign(b, a), DTYPES[kind], 2)


def extreme(words: Words) -> Operation:
    """min and max."""
    if words.instruction.words[-1] in more_integers.PAIRS:
        return more_integers.pairs(words)
    nan, ftz, relu = words.flag("NaN"), words.flag("ftz"), words.flag("relu")
    xorsign = words.flag("xorsign") and words.flag("abs")
    kind = words.kind((*INTEGERS, "f32", "f64", *HALVES))
    words.done()
    if kind == "s32" and relu:
        return same(partial(_not_negative, np.minimum if words.name == "min" else np.maximum), DTYPES[kind], 2)
    if kind in INTEGERS and not (nan or ftz or relu or xorsign):
        return same(np.minimum if words.name == "min" else np.maximum, DTYPES[kind], 2)
    if kind in HALVES and not relu:
        return half_forms.extreme(words, kind, nan=nan, ftz=ftz, xorsign=xorsign)
    if kind in INTEGERS or relu:
        raise unsupported(words.instruction)
    if kind == "f64" and not (nan or ftz):
        return same(float64.minimum if words.name == "min" else float64.maximum, F64, 2)
    single = partial(float32.minimum if words.name == "min" else float32.maximum, nan=nan)
    if kind == "f32" and xorsign:
        return same(dressed(partial(float32.of_magnitudes, single), ftz), F32, 2)
    if kind == "f32":
        count = 3 if len(words.instruction.operands) == 4 else 2
        three = lambda a, b, c: single(single(a, b), c)  # noqa: E731
        return same(dressed(single if count == 2 else three, ftz), F32, count)
    raise unsupported(words.instruction)


def _not_negative(function: Function, a: Any, b: Any) -> Any:
    return np.maximum(function(a, b), a.dtype.type(0))
