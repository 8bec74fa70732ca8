"""Boxes of tensors: their elements in global memory, with zeros for what lies outside; their place in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.faults import UnsupportedError
from cutesmith_evaluator.emulator.memory import AccessFaultError, GlobalMemory
from cutesmith_evaluator.emulator.tensormaps import TensorMap

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 16  # bytes that stay together in every swizzle
_ALIGNMENT = 128  # of a box in shared memory


@dataclass(frozen=True)
class Inside:
    """The part of a box that lies in the tensor, dimensions outermost first as NumPy has them."""

    address: int
    slices: tuple[slice, ...]
    strides: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(each.stop - each.start for each in self.slices)


def inside(tensor: TensorMap, corner: Sequence[int]) -> Inside | None:
    """None when all of the box lies outside."""
    starts = [max(0, -place) for place in corner]
    ends = [min(box, extent - place) for box, extent, place in zip(tensor.box, tensor.extents, corner, strict=True)]
    if any(end <= start for start, end in zip(starts, ends, strict=True)):
        return None
    steps = zip(corner, starts, tensor.strides, strict=True)
    address = tensor.address + sum((place + start) * stride for place, start, stride in steps)
    slices = tuple(slice(start, end) for start, end in zip(starts, ends, strict=True))
    return Inside(address, slices[::-1], tensor.strides[::-1])


def load_box(memory: GlobalMemory, tensor: TensorMap, corner: Sequence[int], position: int) -> Array:
    """The box's bytes in order. `position`: of the issuing thread among those that run. Raises AccessFaultError."""
    box = np.zeros(tensor.box[::-1], f"u{tensor.size}")
    part = inside(tensor, corner)
    if part is not None:
        box[part.slices] = memory.read_region(part.address, part.shape, part.strides, tensor.size, position)
    return box.reshape(-1).view(np.uint8)


def store_box(memory: GlobalMemory, tensor: TensorMap, corner: Sequence[int], data: Array, position: int) -> None:
    """Elements outside the tensor are left out."""
    part = inside(tensor, corner)
    if part is not None:
        box = data.view(f"u{tensor.size}").reshape(tensor.box[::-1])
        memory.write_region(part.address, part.shape, part.strides, box[part.slices], position)


def places(tensor: TensorMap, address: int, position: int) -> Array:
    """Where each 16 bytes of the box lie in shared memory, from its first address there."""
    if address % _ALIGNMENT:
        words = f"names a box in shared memory at 0x{address:x}, no multiple of {_ALIGNMENT}"
        raise AccessFaultError("misaligned-access", words, position, address)
    row = tensor.box[0] * tensor.size
    if row % CHUNK:
        raise UnsupportedError(f"a tensor map whose box has rows of {row} bytes is no multiple of {CHUNK}")
    span = 16 << tensor.swizzle
    if tensor.swizzle and row > span:
        words = f"uses a tensor map whose box has rows of {row} bytes, more than the {span} of its swizzle"
        raise AccessFaultError("tensor-map", words, position, address)
    if tensor.swizzle and row != span:
        raise UnsupportedError(f"a swizzle of {span} bytes over rows of {row} bytes is not emulated yet")
    return swizzled(np.arange(address, address + tensor.box_bytes, CHUNK, dtype=np.int64), tensor.swizzle)


def swizzled(addresses: Array, bits: int) -> Array:
    """The place within every 128 bytes is mixed with the number of those 128 bytes."""
    return addresses ^ (((addresses >> 7) & ((1 << bits) - 1)) << 4)
