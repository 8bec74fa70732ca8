"""How an emulated result is held against the recorded one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Check:
    """`kind` "exact": bit for bit. "set": the same bits in any order. "close": floats within a bound.

    The bound of "close" is relative · |recorded| + absolute, `absolute` one number or one for each element; what is
    not finite has to be the same, NaNs whatever their bits. `form`: the float format of the buffer.
    """

    kind: str = "exact"
    form: str = "f32"
    relative: float = 0.0
    absolute: float | tuple[float, ...] = 0.0


EXACT = Check()
ANY_ORDER = Check("set")


def close(form: str, *, relative: float = 0.0, absolute: float | tuple[float, ...] = 0.0) -> Check:
    return Check("close", form, relative, absolute)


def floats(array: Array, form: str) -> Array:
    """The values that the bits stand for, in float64."""
    bare = array.reshape(-1).view(np.uint8)
    if form in ("bf16", "bf16x2"):
        return (bare.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bare.view({"f16": "f2", "f16x2": "f2", "f32": "f4", "f64": "f8"}[form]).astype(np.float64)


def differences(check: Check, recorded: Array, emulated: Array) -> Array:
    """Indices of the elements that differ by more than the check allows."""
    if check.kind == "close":
        return np.flatnonzero(_far(check, floats(recorded, check.form), floats(emulated, check.form)))
    one, other = recorded.reshape(-1), emulated.reshape(-1)
    if check.kind == "set":
        one, other = np.sort(one), np.sort(other)
    whole = np.dtype(f"u{one.itemsize}")
    return np.flatnonzero(one.view(whole) != other.view(whole))


def _far(check: Check, recorded: Array, emulated: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        bound = check.relative * np.abs(recorded) + np.asarray(check.absolute)
        finite = np.isfinite(recorded) & np.isfinite(emulated)
        same = (recorded == emulated) | (np.isnan(recorded) & np.isnan(emulated))
        return np.where(finite, ~(np.abs(recorded - emulated) <= bound), ~same)
