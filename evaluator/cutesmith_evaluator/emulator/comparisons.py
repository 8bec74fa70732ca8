"""setp, selp and testp: predicates from values, and values by predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator import halves
from cutesmith_evaluator.emulator.kinds import BITS, BOOL, DTYPES, INTEGERS, U32, Words, unsupported
from cutesmith_evaluator.emulator.operation import Operation
from cutesmith_evaluator.emulator.ptx import Pair
from cutesmith_evaluator.emulator.rounding import flushed

Function = Callable[..., Any]

_ORDERED: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_JOINS: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_FLOATS = ("f32", "f64", "f16", "bf16")


def setp(words: Words) -> Operation:
    """One predicate, or it and its complement, each joined with a third one."""
    name = words.one_of((*_ORDERED, *_UNSIGNED, *_UNORDERED, "num", "nan"))
    join = words.one_of(tuple(_JOINS), "")
    ftz = words.flag("ftz")
    kind = words.kind((*BITS, *INTEGERS, *_FLOATS, "f16x2", "bf16x2"))
    words.done()
    if kind.endswith("x2"):
        return _on_pairs(_float_comparison(name, words), kind, words, plain=not (join or ftz))
    if kind in _FLOATS:
        compare = _on_floats(_float_comparison(name, words), kind, ftz)
    else:
        compare = _integer_comparison(name, words)
    dtype = DTYPES[kind]
    count = 2 if isinstance(words.instruction.operands[0], Pair) else 1
    if not join:
        return Operation(_complemented(compare) if count == 2 else compare, (dtype, dtype), (BOOL,) * count)
    joined = _joined(compare, _JOINS[join], count)
    return Operation(joined, (dtype, dtype, BOOL), (BOOL,) * count)


def _integer_comparison(name: str, words: Words) -> Function:
    name = _UNSIGNED.get(name, name)
    if name not in _ORDERED:
        raise unsupported(words.instruction)
    return _ORDERED[name]


def _float_comparison(name: str, words: Words) -> Function:
    """NumPy's comparisons are false on NaN, but for `!=`, whose ordered form is PTX's `ne`."""
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "neu":
        return np.not_equal
    if name == "ne":
        return lambda a, b: (a < b) | (a > b)
    if name in _UNORDERED:
        ordered = _ORDERED[_UNORDERED[name]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    if name not in _ORDERED:
        raise unsupported(words.instruction)
    return _ORDERED[name]


def _on_floats(compare: Function, kind: str, ftz: bool) -> Function:
    if kind in ("f16", "bf16"):
        ready = halves.flushed if ftz else lambda bits: bits
        return lambda a, b: compare(halves.widen(ready(a), kind), halves.widen(ready(b), kind))
    return (lambda a, b: compare(flushed(a), flushed(b))) if ftz else compare


def _on_pairs(compare: Function, kind: str, words: Words, *, plain: bool) -> Operation:
    """The lower halves give the first predicate, the upper ones the second."""
    if not plain or not isinstance(words.instruction.operands[0], Pair):
        raise unsupported(words.instruction)
    half = _on_floats(compare, kind.removesuffix("x2"), False)

    def run(a: Any, b: Any) -> tuple[Any, Any]:
        (low, high), (other_low, other_high) = halves.halves(a), halves.halves(b)
        return half(low, other_low), half(high, other_high)

    return Operation(run, (U32, U32), (BOOL, BOOL))


def _complemented(compare: Function) -> Function:
    def run(a: Any, b: Any) -> tuple[Any, Any]:
        found = compare(a, b)
        return found, ~found

    return run


def _joined(compare: Function, join: Function, count: int) -> Function:
    def run(a: Any, b: Any, c: Any) -> Any:
        found = compare(a, b)
        return join(found, c) if count == 1 else (join(found, c), join(~found, c))

    return run


def selp(words: Words) -> Operation:
    kind = words.kind((*BITS, *INTEGERS, "f32", "f64"))
    words.done()
    dtype = np.dtype(f"u{DTYPES[kind].itemsize}")  # bits, so that NaNs pass unchanged
    return Operation(lambda a, b, p: np.where(p, a, b), (dtype, dtype, BOOL), (dtype,))


def set_value(words: Words) -> Operation:
    """set: all ones for true, or 1.0 where the result is a float; zero for false. Pairs are compared half by half."""
    name = words.one_of((*_ORDERED, *_UNSIGNED, *_UNORDERED, "num", "nan"))
    ftz = words.flag("ftz")
    to = words.kind(("u32", "s32", "f32", "f16x2", "bf16x2"))
    kind = words.kind((*BITS, *INTEGERS, *_FLOATS, "f16x2", "bf16x2"))
    words.done()
    if kind.endswith("x2"):
        if to != kind or ftz:
            raise unsupported(words.instruction)
        half, one = kind.removesuffix("x2"), np.uint16(0x3C00 if kind == "f16x2" else 0x3F80)
        single = _on_floats(_float_comparison(name, words), half, False)
        return Operation(halves.paired(lambda a, b: np.where(single(a, b), one, np.uint16(0))), (U32, U32), (U32,))
    is_float = kind in _FLOATS
    compare = _on_floats(_float_comparison(name, words), kind, ftz) if is_float else _integer_comparison(name, words)
    true = np.uint32(0x3F800000 if to == "f32" else 0xFFFFFFFF)
    return Operation(lambda a, b: np.where(compare(a, b), true, np.uint32(0)), (DTYPES[kind],) * 2, (U32,))


def slct(words: Words) -> Operation:
    """The first where the third is not negative, else the second."""
    ftz = words.flag("ftz")
    kind = words.kind((*BITS, *INTEGERS, "f32", "f64"))
    sign = words.kind(("s32", "f32"))
    words.done()
    dtype = np.dtype(f"u{DTYPES[kind].itemsize}")

    def run(a: Any, b: Any, c: Any) -> Any:
        return np.where((flushed(c) if ftz else c) >= 0, a, b)

    return Operation(run, (dtype, dtype, DTYPES[sign]), (dtype,))


def testp(words: Words) -> Operation:
    what = words.one_of(("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    kind = words.kind(("f32", "f64"))
    words.done()
    dtype = np.dtype(f"u{DTYPES[kind].itemsize}")
    return Operation(lambda a: _is(a, what, dtype), (dtype,), (BOOL,))


def _is(bits: Any, what: str, dtype: np.dtype) -> Any:
    width, fraction = (32, 23) if dtype == U32 else (64, 52)
    size = bits & dtype.type((1 << (width - 1)) - 1)
    smallest = dtype.type(1 << fraction)
    infinity = dtype.type((1 << (width - 1)) - (1 << fraction))
    match what:
        case "finite":
            return size < infinity
        case "infinite":
            return size == infinity
        case "number":
            return size <= infinity
        case "notanumber":
            return size > infinity
        case "normal":
            return ((size >= smallest) & (size < infinity)) | (size == 0)  # the manual counts zeros as normal
        case _:
            return (size < smallest) & (size > 0)
