"""add, sub, mul, fma, min, max, neg, abs, tanh and ex2 of float16 and bfloat16, alone and in pairs, with modifiers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import approximations, float32, halves
from cutesmith_evaluator.emulator.kinds import DTYPES, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation, same
from cutesmith_evaluator.emulator.rounding import F32, U16, saturated

Function = Callable[..., Any]

_ARITHMETIC: dict[str, Function] = {"add": halves.add, "sub": halves.sub, "mul": halves.mul, "fma": halves.fma}
_APPROXIMATE: dict[str, Function] = {"ex2": approximations.ex2, "tanh": approximations.tanh}
_COUNTS = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
_SCALES = {"mul": (12, 0), "fma": (12, 0, 12)}  # powers of two for the operands, so that the result is scaled
_SIGN, _INFINITY = U16(0x8000), {"f16": U16(0x7C00), "bf16": U16(0x7F80)}
_LEAST = U16(0x0400)  # the least normal float16


def arithmetic(words: Words, kind: str, *, ftz: bool, sat: bool, relu: bool) -> Operation:
    base = kind.removesuffix("x2")
    if (base == "bf16" and (ftz or sat)) or words.name not in _ARITHMETIC:
        raise unsupported(words.instruction)
    function = partial(_ARITHMETIC[words.name], kind=base)
    scales = _SCALES.get(words.name)
    return _operation(_dressed(function, base, ftz=ftz, sat=sat, relu=relu, scales=scales), kind, _COUNTS[words.name])


def extreme(words: Words, kind: str, *, nan: bool, ftz: bool, xorsign: bool) -> Operation:
    """min and max. `xorsign`: of the magnitudes, with the product's sign."""
    base = kind.removesuffix("x2")
    single = partial(float32.minimum if words.name == "min" else float32.maximum, nan=nan)

    def run(a: Any, b: Any) -> Any:
        sign = (a ^ b) & _SIGN
        if xorsign:
            a, b = a & ~_SIGN, b & ~_SIGN
        found = halves.narrow(single(halves.widen(a, base), halves.widen(b, base)), base)
        return np.where(found > _INFINITY[base], found, found | sign) if xorsign else found

    return _operation(_dressed(run, base, ftz=ftz), kind, 2)


def negation(words: Words, kind: str, *, ftz: bool) -> Operation:
    base = kind.removesuffix("x2")
    flipped = (lambda a: a ^ _SIGN) if words.name == "neg" else (lambda a: a & ~_SIGN)

    def function(a: Any) -> Any:
        return np.where(_is_nan(a, base), halves.NAN16, flipped(a))

    return _operation(_dressed(function, base, ftz=ftz), kind, 1)


def approximate(words: Words, kind: str, *, ftz: bool) -> Operation:
    """In float32, rounded once more: closer than the manual promises."""
    base = kind.removesuffix("x2")
    if words.name not in _APPROXIMATE:
        raise unsupported(words.instruction)
    single = _APPROXIMATE[words.name]

    def function(a: Any) -> Any:
        return halves.narrow(single(halves.widen(a, base)), base)

    return _operation(_dressed(function, base, ftz=ftz), kind, 1)


def _operation(function: Function, kind: str, count: int) -> Operation:
    return same(halves.paired(function) if kind.endswith("x2") else function, DTYPES[kind], count)


def _dressed(
    function: Function,
    kind: str,
    *,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    scales: tuple[int, ...] | None = None,
) -> Function:
    """Subnormals flushed on the way in and out, the result clamped to [0, 1] or to what is not negative."""
    if not (ftz or sat or relu):
        return function

    def run(*values: Any) -> Any:
        result = _flushing(function, values, kind, scales) if ftz else function(*values)
        if sat:
            return halves.narrow(saturated(halves.widen(result, kind)), kind)
        return np.where((result >> U16(15)).astype(bool) & ~_is_nan(result, kind), U16(0), result) if relu else result

    return run


def _flushing(function: Function, values: tuple[Any, ...], kind: str, scales: tuple[int, ...] | None) -> Any:
    """Where a subnormal float16 would be rounded up to the least normal one, the result is flushed too."""
    values = tuple(halves.flushed(value, kind) for value in values)
    result = halves.flushed(function(*values), kind)
    least = (result & ~_SIGN) == _LEAST
    if scales is None or not least.any():
        return result
    scaled = function(*(_scaled(value, scale) for value, scale in zip(values, scales, strict=True)))
    too_small = np.abs(halves.widen(scaled, kind)) < F32(2.0**-2)
    return np.where(least & too_small, result & _SIGN, result)


def _scaled(bits: Any, power: int) -> Any:
    return halves.narrow(halves.widen(bits, "f16") * F32(2.0**power), "f16") if power else bits


def _is_nan(bits: Any, kind: str) -> Any:
    return (bits & ~_SIGN) > _INFINITY[kind]
