"""add, sub, mul, fma, min, max, neg, abs, tanh and ex2 of float16 and bfloat16, alone and in pairs, with modifiers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import approximations, float32, halves
from cutesmith_evaluator.emulator.kinds import DTYPES, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation, same
from cutesmith_evaluator.emulator.rounding import U16, saturated

Function = Callable[..., Any]

_ARITHMETIC: dict[str, Function] = {"add": halves.add, "sub": halves.sub, "mul": halves.mul, "fma": halves.fma}
_APPROXIMATE: dict[str, Function] = {"ex2": approximations.ex2, "tanh": approximations.tanh}
_SIGN, _INFINITY = U16(0x8000), {"f16": U16(0x7C00), "bf16": U16(0x7F80)}


def arithmetic(words: Words, kind: str, *, ftz: bool, sat: bool, relu: bool) -> Operation:
    base = kind.removesuffix("x2")
    if (base == "bf16" and (ftz or sat)) or words.name not in _ARITHMETIC:
        raise unsupported(words.instruction)
    function = partial(_ARITHMETIC[words.name], kind=base)
    return _operation(_dressed(function, base, ftz=ftz, sat=sat, relu=relu), kind, 3 if words.name == "fma" else 2)


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
    function = (lambda a: a ^ _SIGN) if words.name == "neg" else (lambda a: a & ~_SIGN)
    return _operation(_dressed(function, kind.removesuffix("x2"), ftz=ftz), kind, 1)


def approximate(words: Words, kind: str) -> Operation:
    """In float32, rounded once more: closer than the manual promises."""
    base = kind.removesuffix("x2")
    if words.name not in _APPROXIMATE:
        raise unsupported(words.instruction)
    single = _APPROXIMATE[words.name]
    return _operation(lambda a: halves.narrow(single(halves.widen(a, base)), base), kind, 1)


def _operation(function: Function, kind: str, count: int) -> Operation:
    return same(halves.paired(function) if kind.endswith("x2") else function, DTYPES[kind], count)


def _dressed(function: Function, kind: str, *, ftz: bool = False, sat: bool = False, relu: bool = False) -> Function:
    """Subnormals flushed on the way in and out, the result clamped to [0, 1] or to what is not negative."""
    if not (ftz or sat or relu):
        return function

    def run(*values: Any) -> Any:
        result = function(*(map(_flushed, values) if ftz else values))
        result = _flushed(result) if ftz else result
        if sat:
            return halves.narrow(saturated(halves.widen(result, kind)), kind)
        is_nan = (result & ~_SIGN) > _INFINITY[kind]
        return np.where((result >> U16(15)).astype(bool) & ~is_nan, U16(0), result) if relu else result

    return run


def _flushed(bits: Any) -> Any:
    """Subnormal float16 become zeros of their sign."""
    return np.where(bits & _INFINITY["f16"], bits, bits & _SIGN)
