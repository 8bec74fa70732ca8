"""cvt: between integers, floats and half formats, in every rounding that the instruction can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import float64, halves, narrow_conversions
from cutesmith_evaluator.emulator.kinds import DTYPES, INTEGERS, ROUNDINGS, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation
from cutesmith_evaluator.emulator.rounding import (
    F32,
    F64,
    Rounding,
    canonical,
    exact_directed,
    flushed,
    round_sum,
    saturated,
    two_sum_error,
)

Function = Callable[..., Any]

_HALF = ("f16", "bf16")
_PAIRS = ("f16x2", "bf16x2")
_TO_INTEGER: dict[str, Function] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def convert(words: Words) -> Operation:
    """cvt{.rounding}{.relu}{.ftz}{.sat}.to.from"""
    if any(word in narrow_conversions.NAMES for word in words.instruction.words):
        return narrow_conversions.convert(words)
    rounding = words.one_of((*ROUNDINGS, *_TO_INTEGER), "")
    relu, ftz, sat = words.flag("relu"), words.flag("ftz"), words.flag("sat")
    to, source = words.kind((*INTEGERS, "f32", "f64", *_HALF, *_PAIRS)), words.kind((*INTEGERS, "f32", "f64", *_HALF))
    words.done()
    function = _function(words, to, source, rounding)
    count = 2 if to in _PAIRS else 1
    if relu and to not in (*_HALF, *_PAIRS):
        raise unsupported(words.instruction)
    if sat and to not in ("f32", "f64", "f16", *INTEGERS):
        raise unsupported(words.instruction)
    if ftz and "f32" not in (to, source):
        raise unsupported(words.instruction)
    function = _finished(function, to, source, ftz=ftz, sat=sat, relu=relu)
    return Operation(function, (DTYPES[source],) * count, (DTYPES[to],), relaxed=True)


def _finished(function: Function, to: str, source: str, *, ftz: bool, sat: bool, relu: bool) -> Function:
    def run(*values: Any) -> Any:
        if ftz and source == "f32":
            values = tuple(canonical(flushed(value)) for value in values)
        if relu:
            values = tuple(np.where((value > 0) | np.isnan(value), value, F32(0)) for value in values)
        if sat:
            values = tuple(_clamped(value, to, source) for value in values)
        result = function(*values)
        return flushed(np.asarray(result)) if ftz and to == "f32" else result

    return run if ftz or sat or relu else function


def _clamped(value: Any, to: str, source: str) -> Any:
    """To what the result may be; conversions of floats to integers clamp by themselves."""
    if source in INTEGERS and to in INTEGERS:
        low, high = (
            max(np.iinfo(DTYPES[source]).min, np.iinfo(DTYPES[to]).min),
            min(np.iinfo(DTYPES[source]).max, np.iinfo(DTYPES[to]).max),
        )
        return np.clip(value, DTYPES[source].type(low), DTYPES[source].type(high))
    if to in INTEGERS:
        return value
    if source in INTEGERS:
        return np.clip(value, 0, 1).astype(DTYPES[source])
    if source in _HALF:
        return halves.narrow(saturated(halves.widen(value, source)), source)
    return np.where(value > 0, np.minimum(value, 1), np.zeros_like(value))


def _function(words: Words, to: str, source: str, rounding: str) -> Function:
    if to in _PAIRS:
        return _to_pair(words, to.removesuffix("x2"), source, rounding)
    if source in INTEGERS and to in INTEGERS and not rounding:
        return lambda a: a.astype(DTYPES[to])
    if source in INTEGERS:
        return _from_integer(words, to, source, rounding)
    if to in INTEGERS:
        return _to_integer(words, DTYPES[to], source, rounding)
    return _between_floats(words, to, source, rounding)


def _to_pair(words: Words, half: str, source: str, rounding: str) -> Function:
    """The first value goes to the upper half."""
    if source != "f32" or rounding not in ("rn", "rz"):
        raise unsupported(words.instruction)
    return lambda a, b: halves.packed(halves.narrow(b, half, rounding), halves.narrow(a, half, rounding))


def _from_integer(words: Words, to: str, source: str, rounding: str) -> Function:
    if rounding not in ROUNDINGS:
        raise unsupported(words.instruction)
    if DTYPES[source].itemsize == 8 and not (to in ("f32", "f64") and rounding == "rn"):
        return _from_wide_integer(to, rounding)  # type: ignore[arg-type]
    if to == "f64":
        return lambda a: a.astype(F64)
    if to == "f32":
        return lambda a: a.astype(F32) if rounding == "rn" else exact_directed(a.astype(F64), rounding)
    return lambda a: halves.exact_result(np.atleast_1d(a.astype(F64)), F64(0), to, rounding)


def _from_wide_integer(to: str, rounding: Rounding) -> Function:
    """Of two halves that float64 holds exactly, as their sum and what it lacks."""

    def run(values: Any) -> Any:
        shift = values.dtype.type(32)
        upper = (values >> shift).astype(F64) * F64(2.0**32)
        lower = (values & values.dtype.type(0xFFFFFFFF)).astype(F64)
        if to == "f32":
            return round_sum(upper, lower, rounding)
        total = upper + lower
        error = two_sum_error(upper, lower, total)
        if to == "f64":
            return float64.directed(total, error, rounding)
        return halves.exact_result(np.atleast_1d(total), error, to, rounding)

    return run


def _to_integer(words: Words, dtype: np.dtype, source: str, rounding: str) -> Function:
    """Clamped to the type's range. NaN: 0, or the sign bit alone where a type of 64 bits takes part."""
    if rounding not in _TO_INTEGER:
        raise unsupported(words.instruction)
    integral = _TO_INTEGER[rounding]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    nan = dtype.type(1 << 63 if dtype.kind == "u" else low) if dtype.itemsize == 8 else None
    if source == "f64" and nan is None:
        nan = dtype.type(1 << (8 * dtype.itemsize - 1) if dtype.kind == "u" else low)

    def run(values: Any) -> Any:
        exact = integral((halves.widen(values, source) if source in _HALF else values).astype(F64))
        over, under = exact >= F64(high) + (1 if dtype.itemsize < 8 else 0), exact < F64(low)
        inside = np.where(over | under | np.isnan(exact), F64(0), exact).astype(dtype)
        clamped = np.where(over, dtype.type(high), np.where(under, dtype.type(low), inside))
        return np.where(np.isnan(exact), nan if nan is not None else dtype.type(0), clamped)

    return run


def _between_floats(words: Words, to: str, source: str, rounding: str) -> Function:
    if to == source and rounding in _TO_INTEGER:
        integral = _TO_INTEGER[rounding]
        if to in _HALF:
            return lambda a: halves.narrow(integral(halves.widen(a, to)), to)
        return (lambda a: canonical(integral(a))) if to == "f32" else integral
    if to == source == "f32" and not rounding:
        return lambda a: canonical(a)
    if to == "f32" and source in _HALF and not rounding:
        return lambda a: halves.widen(a, source)
    if to == "f64" and not rounding:
        return lambda a: halves.widen_to_double(a, source) if source in _HALF else a.astype(F64)
    if to == "f32" and source == "f64" and rounding in ROUNDINGS:
        return lambda a: _cut_nans(a, a.astype(F32) if rounding == "rn" else exact_directed(a, rounding))
    if to in _HALF and source == "f32" and rounding in ROUNDINGS:
        return lambda a: halves.narrow(a, to, rounding)
    if to in _HALF and source in _HALF and rounding in ROUNDINGS:
        return lambda a: halves.narrow(halves.widen(a, source), to, rounding)
    if to in _HALF and source == "f64" and rounding in ROUNDINGS:
        return lambda a: halves.of_double(np.atleast_1d(a), to, rounding)
    raise unsupported(words.instruction)


def _cut_nans(wide: Any, narrow: Any) -> Any:
    """A float64 NaN keeps its sign and the upper bits of its fraction, and becomes a quiet one."""
    nan = np.isnan(wide)
    if not nan.any():
        return narrow
    bits = wide.view(np.uint64)
    kept = (bits >> np.uint64(32) & np.uint64(0x80000000)) | (bits >> np.uint64(29) & np.uint64(0x3FFFFF))
    return np.where(nan, (kept | np.uint64(0x7FC00000)).astype(np.uint32).view(F32), narrow)
