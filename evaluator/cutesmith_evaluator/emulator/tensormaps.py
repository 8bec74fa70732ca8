"""Tensor maps: the 128 bytes that describe a tensor in global memory to the bulk copies, as the host code writes them.

The host code of CuTe DSL mostly fills the bytes itself, without a call of cuTensorMapEncodeTiled. Seen in what
nvidia-cutlass-dsl 4.8.1 writes, in words of 64 bits: 0 the address; 1 the kind below, and from bit 32 the strides over
16, one for each dimension after the first, going on through words 2 and 3; their bits above 36 from bit 32 of word 3;
from word 4 the extents less 1, 32 bits each; in word 6 from bit 56, and on in word 7, the box's extents less 1, 8 bits.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

from cutesmith_evaluator.emulator.faults import FaultError, UnsupportedError

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


# cuTensorMapEncodeTiled's numbers for the types of elements, as codes of the above.
_DRIVER_CODES = {0: 0, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 6, 7: 7, 8: 9, 9: 10}


@dataclass(frozen=True)
class Encoding:
    """What cuTensorMapEncodeTiled is given. `strides` in bytes, without the first dimension's."""

    kind: int
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    interleave: int
    swizzle: int
    fill: int

    def bytes(self) -> bytes:
        """Those that are used. Raises FaultError for what CUDA refuses, UnsupportedError for what is not known here."""
        if self.kind not in _DRIVER_CODES or self.interleave or self.fill or set(self.steps) != {1}:
            raise UnsupportedError("a tensor map of such a type, interleaved, with steps or filled is not emulated yet")
        code = _DRIVER_CODES[self.kind]
        self._check(_SIZES[code])
        low = _MARK | len(self.extents) - 1 << 4 | code << 7 | self.swizzle << 13
        parts = [stride // 16 for stride in self.strides] + [0] * (5 - len(self.extents))
        last = [extent - 1 for extent in self.extents] + [0] * (5 - len(self.extents))
        box = [extent - 1 for extent in self.box] + [0] * (5 - len(self.box))
        halves = [part & 0xFFFFFFFF for part in parts]
        upper = sum((part >> 32 & 15) << 32 + 4 * place for place, part in enumerate(parts))
        words = [self.address, low | halves[0] << 32, halves[1] | halves[2] << 32, halves[3] | upper]
        words += [last[0] | last[1] << 32, last[2] | last[3] << 32, last[4] | box[0] << 56]
        return struct.pack("<8Q", *words, sum(extent << 8 * place for place, extent in enumerate(box[1:])))

    def _check(self, size: int) -> None:
        row = self.box[0] * size
        wrong = {
            f"its address 0x{self.address:x} is no multiple of 16": self.address % 16,
            f"of its strides {self.strides} one is no multiple of 16 bytes": any(each % 16 for each in self.strides),
            f"a row of its box has {row} bytes, no multiple of 16": row % 16,
            f"its box is {self.box}; extents are 1 to 256": not all(0 < each <= 256 for each in self.box),
            f"a row of its box has {row} bytes, more than its swizzle": self.swizzle and row > 16 << self.swizzle,
        }
        if found := next((words for words, holds in wrong.items() if holds), None):
            raise FaultError("tensor-map", f"a tensor map cannot be made: {found}")


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


# Changes of one field, in the words of 64 bits.


def with_rank(words: list[int], _: int, value: int) -> None:
    """`value`: the rank less 1."""
    words[1] = _changed(words[1], 4, 3, value)


def with_extent(words: list[int], dimension: int, value: int) -> None:
    word, half = 4 + dimension // 2, dimension % 2
    words[word] = _changed(words[word], 32 * half, 32, value - 1)


def with_stride(words: list[int], dimension: int, value: int) -> None:
    """`value` in bytes; dimension 0 is the second of the tensor."""
    word, half = (1, 1) if dimension == 0 else (2 + (dimension - 1) // 2, (dimension - 1) % 2)
    words[word] = _changed(words[word], 32 * half, 32, value >> 4 & 0xFFFFFFFF)
    words[3] = _changed(words[3], 32 + 4 * dimension, 4, value >> 36)


def with_box(words: list[int], dimension: int, value: int) -> None:
    word, place = (6, 56) if dimension == 0 else (7, 8 * (dimension - 1))
    words[word] = _changed(words[word], place, 8, value - 1)


def _changed(word: int, place: int, width: int, value: int) -> int:
    mask = (1 << width) - 1
    return word & ~(mask << place) | (value & mask) << place
