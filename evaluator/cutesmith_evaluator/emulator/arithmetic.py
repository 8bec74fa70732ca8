"""add, sub, mul, mad, fma, div, rem, min, max, neg, abs and the functions: their forms and types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import approximations, float32, float64, halves, integers
from cutesmith_evaluator.emulator.kinds import DTYPES, HALVES, INTEGERS, ROUNDINGS, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation, same
from cutesmith_evaluator.emulator.rounding import Rounding, flushed, saturated

F32, F64 = DTYPES["f32"], DTYPES["f64"]
Function = Callable[..., Any]

_FLOAT = ("f32", "f64", *HALVES)
_HALF_BINARY: dict[str, Function] = {"add": halves.add, "sub": halves.sub, "mul": halves.mul, "fma": halves.fma}
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
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": float64.fma,
    "div": np.divide,
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
_ARGUMENTS = {"fma": 3, "rcp": 1, "sqrt": 1, **dict.fromkeys(_APPROXIMATE, 1)}


def arithmetic(words: Words) -> Operation:
    """add, sub, mul, fma, mad, div, rcp, sqrt."""
    if words.name in ("add", "sub") and words.instruction.words[-1] in INTEGERS:
        return _integer(words)
    if words.name in ("mul", "mad") and words.instruction.words[-1] in INTEGERS:
        return _product(words)
    if words.name == "div" and words.instruction.words[-1] in INTEGERS:
        return division(words)
    words.name = "fma" if words.name == "mad" else words.name
    return _floating(words)


def _integer(words: Words) -> Operation:
    dtype = DTYPES[words.kind(INTEGERS)]
    words.done()
    return same(_INTEGER[words.name], dtype, 2)


def _product(words: Words) -> Operation:
    """mul and mad: the lower half, the upper half or the whole product."""
    part = words.one_of(("lo", "hi", "wide"))
    dtype = DTYPES[words.kind(("u16", "s16", "u32", "s32", "u64", "s64"))]
    words.done()
    if part == "wide" and dtype.itemsize == 8:
        raise unsupported(words.instruction)
    product: Function = {"lo": np.multiply, "hi": integers.high, "wide": integers.wide}[part]
    result = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}") if part == "wide" else dtype
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
    ftz, sat = words.flag("ftz"), words.flag("sat")
    kind = words.kind(_FLOAT)
    words.done()
    count = _ARGUMENTS.get(words.name, 2)
    if kind in HALVES and words.name in _HALF_BINARY and rounding == "rn" and not (ftz or sat):
        return _half(words.name, kind, count)
    if kind == "f64" and rounding == "rn" and not (approximate or ftz or sat):
        return same(_DOUBLE[words.name], F64, count)
    if kind != "f32" or (approximate and words.name not in ("div", "rcp", "sqrt")):
        raise unsupported(words.instruction)
    return same(dressed(partial(_SINGLE[words.name], rounding=rounding), ftz, sat), F32, count)


def _half(name: str, kind: str, count: int) -> Operation:
    function = partial(_HALF_BINARY[name], kind=kind.removesuffix("x2"))
    return same(_on_both_halves(function) if kind.endswith("x2") else function, DTYPES[kind], count)


def _on_both_halves(function: Function) -> Function:
    def both(*values: Any) -> Any:
        parts = [halves.halves(value) for value in values]
        return halves.packed(function(*(low for low, _ in parts)), function(*(high for _, high in parts)))

    return both


def dressed(function: Function, ftz: bool, sat: bool = False) -> Function:
    """`function` of float32 with subnormals flushed on the way in and out, and the result clamped."""
    if not ftz and not sat:
        return function

    def run(*values: Any) -> Any:
        result = function(*map(flushed, values)) if ftz else function(*values)
        result = flushed(np.asarray(result)) if ftz else result
        return saturated(result) if sat else result

    return run


def function_of_one(words: Words) -> Operation:
    """ex2, lg2, rsqrt, tanh, sin, cos."""
    if not words.flag("approx"):
        raise unsupported(words.instruction)
    ftz = words.flag("ftz")
    words.kind(("f32",))
    words.done()
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
        return same(np.negative if negative else np.abs, F64, 1)
    sign = DTYPES[kind].type(0x80008000 if kind.endswith("x2") else 0x8000)
    return same((lambda a: a ^ sign) if negative else (lambda a: a & ~sign), DTYPES[kind], 1)


def copysign(words: Words) -> Operation:
    words.kind(("f32",))
    words.done()
    return same(float32.copysign, F32, 2)


def extreme(words: Words) -> Operation:
    """min and max."""
    nan, ftz = words.flag("NaN"), words.flag("ftz")
    kind = words.kind((*INTEGERS, "f32", *HALVES))
    words.done()
    if kind in INTEGERS:
        return same(np.minimum if words.name == "min" else np.maximum, DTYPES[kind], 2)
    single = partial(float32.minimum if words.name == "min" else float32.maximum, nan=nan)
    if kind == "f32":
        count = len(words.instruction.operands) - 1
        three = lambda a, b, c: single(single(a, b), c)  # noqa: E731
        return same(dressed(single if count == 2 else three, ftz), F32, count)
    if ftz:
        raise unsupported(words.instruction)
    half = kind.removesuffix("x2")
    function = lambda a, b: halves.narrow(single(halves.widen(a, half), halves.widen(b, half)), half)  # noqa: E731
    return same(_on_both_halves(function) if kind.endswith("x2") else function, DTYPES[kind], 2)
