"""The machine's read-only registers: thread and block indices, extents, lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.batch import WARP, Batch
from cutesmith_evaluator.emulator.faults import UnsupportedError

_AXES = {"x": 0, "y": 1, "z": 2}


def special_values(batch: Batch, dynamic_shared: int) -> None:
    """Fills the slots of the registers that the program reads. Raises UnsupportedError for one that is not known."""
    for key, slot in batch.program.specials.items():
        name, _, bits = key.partition(":")
        value = _value(batch, name, dynamic_shared)
        batch.values[slot] = value.astype(f"u{int(bits) // 8}")


def _value(batch: Batch, name: str, dynamic_shared: int) -> Any:
    register, _, axis = name.partition(".")
    along = _AXES.get(axis, 0)
    shape = batch.shape
    match register:
        case "%tid":
            return _along(batch.threads, shape.block, along)
        case "%ctaid":
            return _along(_blocks(batch), shape.grid, along)
        case "%clusterid":
            return _along(_blocks(batch), shape.grid, along) // shape.cluster[along]
        case "%nclusterid":
            return np.int64(shape.grid[along] // shape.cluster[along])
        case "%cluster_ctaid":
            return _along(_blocks(batch), shape.grid, along) % shape.cluster[along]
        case "%cluster_nctaid":
            return np.int64(shape.cluster[along])
        case "%cluster_ctarank":
            return batch.blocks % shape.cluster_size
        case "%cluster_nctarank":
            return np.int64(shape.cluster_size)
        case "%gridid":
            return np.int64(0)
        case "%ntid":
            return np.int64(shape.block[along])
        case "%nctaid":
            return np.int64(shape.grid[along])
        case "%laneid":
            return batch.numbers % WARP
        case "%warpid":
            return batch.threads // WARP
        case "%nwarpid":
            return np.int64(shape.padded // WARP)
        case "%dynamic_smem_size":
            return np.int64(dynamic_shared)
        case "%WARP_SZ" | "WARP_SZ":
            return np.int64(WARP)
        case _ if register.startswith("%lanemask_"):
            return _lane_mask(batch.numbers % WARP, register.removeprefix("%lanemask_"))
        case _:
            raise UnsupportedError(f"the register {name} is not emulated yet", batch.program.kernel.name)


def _blocks(batch: Batch) -> Any:
    """Each thread's block, by number in the grid."""
    numbers = batch.shape.block_numbers
    return numbers[batch.blocks] if batch.shape.count > 1 else numbers[0]


def _along(numbers: Any, extents: tuple[int, int, int], axis: int) -> Any:
    x, y, z = extents
    if y == z == 1:
        return numbers if axis == 0 else np.int64(0)
    return (numbers % x, numbers // x % y, numbers // (x * y))[axis]


def _lane_mask(lanes: Any, relation: str) -> Any:
    below = (np.int64(1) << lanes) - 1
    own = np.int64(1) << lanes
    masks = {"lt": below, "le": below | own, "eq": own, "gt": ~(below | own), "ge": ~below}
    return masks[relation] & np.int64(0xFFFFFFFF)
