"""float64 arithmetic in the roundings .rz, .rm and .rp: the nearest result, moved by what it lacks.

What it lacks is found with fractions, an element at a time. Kernels seldom ask for it, so it may be slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from cutesmith_evaluator.emulator import float64
from cutesmith_evaluator.emulator.rounding import F64, Floats, Rounding

Nearest = Callable[..., Floats]
Lacking = Callable[..., Fraction]  # (result, *operands) → a number of the sign of exact - result


def _of(exact: Callable[..., Fraction]) -> Lacking:
    return lambda result, *operands: exact(*operands) - result


_FORMS: dict[str, tuple[Nearest, Lacking]] = {
    "add": (float64.add, _of(lambda a, b: a + b)),
    "sub": (float64.sub, _of(lambda a, b: a - b)),
    "mul": (float64.mul, _of(lambda a, b: a * b)),
    "fma": (float64.fma, _of(lambda a, b, c: a * b + c)),
    "div": (float64.div, _of(lambda a, b: a / b)),
    "rcp": (np.reciprocal, _of(lambda a: 1 / a)),
    "sqrt": (np.sqrt, lambda result, a: a - result * result),
}
_MIRRORED = {"add": (-1.0, -1.0), "sub": (-1.0, -1.0), "fma": (-1.0, 1.0, -1.0)}  # the operands' signs for -result


def directed(name: str, rounding: Rounding) -> Nearest:
    """add, sub, mul, fma, div, rcp or sqrt."""
    nearest, lacking = _FORMS[name]
    if rounding == "rm" and name in _MIRRORED:
        nearest = partial(_with_zeros_down, nearest, _MIRRORED[name])
    return partial(_directed, nearest, lacking, rounding)


def _with_zeros_down(nearest: Nearest, signs: Sequence[float], *operands: Floats) -> Floats:
    """A sum of zero is -0 toward minus infinity, unless it is of +0 alone: what +0 is of the mirrored operands."""
    result = nearest(*operands)
    mirrored = -nearest(*(sign * operand for sign, operand in zip(signs, operands, strict=True)))
    return np.where(result == 0, mirrored, result)


def _directed(nearest: Nearest, lacking: Lacking, rounding: Rounding, *operands: Floats) -> Floats:
    columns = np.broadcast_arrays(*map(np.atleast_1d, operands))
    result = np.array(np.broadcast_to(nearest(*columns), columns[0].shape))
    for place in np.flatnonzero(~np.isnan(result) & np.all([np.isfinite(each) for each in columns], axis=0)):
        values = [Fraction(float(column[place])) for column in columns]
        result[place] = _moved(float(result[place]), values, lacking, rounding)
    return result


def _moved(nearest: float, operands: list[Fraction], lacking: Lacking, rounding: Rounding) -> float:
    if math.isinf(nearest):
        try:
            lacking(Fraction(0), *operands)
        except ZeroDivisionError:
            return nearest  # a quotient by zero is exact
        short = -math.copysign(1.0, nearest)
    else:
        short = lacking(Fraction(nearest), *operands)
        if short == 0:
            return nearest
    inward = (short > 0) != (math.copysign(1.0, nearest) > 0)
    wanted = {"rp": short > 0, "rm": short < 0, "rz": inward and nearest != 0}[rounding]
    return float(np.nextafter(F64(nearest), F64(math.copysign(math.inf, short)))) if wanted else nearest
