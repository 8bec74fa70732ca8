"""Tensor maps for tests: their bytes, and what a box of a tensor holds."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

_CODES = {"uint8": 0, "uint16": 1, "uint32": 2, "float16": 6, "float32": 7}


def encoded(tensor: np.ndarray, box: Sequence[int], swizzle: int = 0) -> np.ndarray:
    """128 bytes for a C-contiguous tensor whose rows are multiples of 16 bytes. `box`: innermost first."""
    extents = tensor.shape[::-1]
    strides = tensor.strides[::-1][1:]
    low = 2 | (tensor.ndim - 1) << 4 | _CODES[tensor.dtype.name] << 7 | swizzle << 13 | 1 << 18
    words = [0] * 16
    words[0] = tensor.ctypes.data
    words[1] = low | (strides[0] // 16 << 32 if strides else 0)
    for place, stride in enumerate(strides[1:], 2):
        words[2 + (place - 2) // 2] |= stride // 16 << 32 * (place % 2)
    for place, extent in enumerate(extents):
        words[4 + place // 2] |= extent - 1 << 32 * (place % 2)
    words[6] |= box[0] - 1 << 56
    words[7] = sum(extent - 1 << 8 * place for place, extent in enumerate(box[1:]))
    return aligned(struct.pack("<16Q", *words))


def aligned(data: bytes, to: int = 64) -> np.ndarray:
    """The bytes at an address that is a multiple of `to`."""
    room = np.zeros(len(data) + to, np.uint8)
    start = -room.ctypes.data % to
    room[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return room[start : start + len(data)]


def box_of(tensor: np.ndarray, corner: Sequence[int], box: Sequence[int]) -> np.ndarray:
    """Element by element, zero outside."""
    found = np.zeros(box[::-1], tensor.dtype)
    for place in np.ndindex(*found.shape):
        index = tuple(start + step for start, step in zip(corner[::-1], place, strict=True))
        if all(0 <= each < extent for each, extent in zip(index, tensor.shape, strict=True)):
            found[place] = tensor[index]
    return found
