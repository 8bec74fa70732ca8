"""Steps for whole warps: which run, and whether all their lanes do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.memory import AccessFaultError

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
WARP = 32


def running_warps(batch: Batch, name: str) -> Array | slice:
    """The numbers of the warps that run now. Raises AccessFaultError for one of which some lanes do not."""
    if batch.mask is None:
        return slice(None)
    lanes = batch.mask.reshape(-1, WARP)
    some = lanes.any(axis=1)
    partial = some & ~lanes.all(axis=1)
    if partial.any():
        first = int(np.flatnonzero(lanes[int(np.flatnonzero(partial)[0])])[0])
        number = int(np.flatnonzero(partial)[0]) * WARP + first
        words = f"executes {name} without all lanes of its warp"
        raise AccessFaultError("inactive-lane", words, int(np.searchsorted(np.flatnonzero(batch.mask), number)), 0)
    return np.flatnonzero(some)


def spread_over(batch: Batch, warps: Array | slice, values: Array) -> Array:
    """(warps, 32) values of the running warps as one per thread of the batch."""
    if isinstance(warps, slice):
        return np.ascontiguousarray(values).reshape(-1)
    whole = np.zeros((batch.size // WARP, WARP), values.dtype)
    whole[warps] = values
    return whole.reshape(-1)
