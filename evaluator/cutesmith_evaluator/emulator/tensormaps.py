"""Tensor maps: the 128 bytes that describe a tensor in global memory to the bulk copies, as the host code writes them.

The host code of CuTe DSL fills the bytes itself, without a call of cuTensorMapEncodeTiled. Seen in what
nvidia-cutlass-dsl 4.8.1 writes, in words of 64 bits: 0 the address; 1 the kind below, and from bit 32 the strides over
16, one for each dimension after the first, going on through words 2 and 3; their bits above 36 from bit 32 of word 3;
from word 4 the extents less 1, 32 bits each; in word 6 from bit 56, and on in word 7, the box's extents less 1, 8 bits.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

from cutesmith_evaluator.emulator.faults import UnsupportedError

BYTES = 64  # of those 128 that are used; the others are left as they were
_SIZES = {0: 1, 1: 2, 2: 4, 4: 8, 6: 2, 7: 4, 9: 8, 10: 2}  # of an element, in bytes, by the code of its type
_KINDS = {0: "u8", 1: "u16", 2: "u32", 4: "u64", 6: "f16", 7: "f32", 9: "f64", 10: "bf16"}
# Of the low half of word 1: what is read below, promotion to the L2 (17, 18), tf32 (16), and whether it is large (21).
_UNDERSTOOD = 0x2767F2
_MARK = 0b0010


@dataclass(frozen=True)
class TensorMap:
    """`strides` in bytes, of every dimension; the first is the innermost. `swizzle`: bits that are mixed, 0 to 3."""

    address: int
    kind: str
    size: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    @property
    def box_bytes(self) -> int:
        count = self.size
        for extent in self.box:
            count *= extent
        return count


@lru_cache(maxsize=256)
def decoded(data: bytes) -> TensorMap:
    """Raises UnsupportedError for what is not understood."""
    words = struct.unpack("<8Q", data)
    low = words[1] & 0xFFFFFFFF
    rank, code, swizzle = (low >> 4 & 7) + 1, low >> 7 & 15, low >> 13 & 3
    if low & ~_UNDERSTOOD or low & 0xF != _MARK or rank > 5 or code not in _SIZES:
        raise UnsupportedError(f"a tensor map of the kind 0x{low:08x} is not emulated yet")
    if words[6] >> 32 & 0xFFFFFF:
        raise UnsupportedError("a tensor map with steps between elements is not emulated yet")
    low_strides = [words[1] >> 32, words[2] & 0xFFFFFFFF, words[2] >> 32, words[3] & 0xFFFFFFFF]
    strides = [16 * (part | (words[3] >> 32 + 4 * place & 15) << 32) for place, part in enumerate(low_strides)]
    extents = [words[4], words[4] >> 32, words[5], words[5] >> 32, words[6]]
    box = [words[6] >> 56, *(words[7] >> 8 * place for place in range(4))]
    return TensorMap(
        words[0],
        _KINDS[code],
        _SIZES[code],
        tuple((extent & 0xFFFFFFFF) + 1 for extent in extents[:rank]),
        (_SIZES[code], *strides[: rank - 1]),
        tuple((extent & 0xFF) + 1 for extent in box[:rank]),
        swizzle,
    )
