"""tensormap: kernels that change a tensor map in memory, for tensors whose place is known to the device alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.access import Location
from cutesmith_evaluator.emulator.bulk import Issuer, issuers
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import U32, U64, Words, unsupported
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Immediate
from cutesmith_evaluator.emulator.tensormaps import BYTES, with_box, with_extent, with_rank, with_stride

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.lowering import Lowering

Array = np.ndarray[Any, np.dtype[Any]]
Change = Callable[[list[int], int, int], None]  # (the map's words of 64 bits, which dimension, new value)
_WORD = 8


def _with_address(words: list[int], _: int, value: int) -> None:
    words[0] = value


_FIELDS: dict[str, tuple[Change, np.dtype]] = {
    "global_address": (_with_address, U64),
    "global_dim": (with_extent, U32),
    "global_stride": (with_stride, U64),
    "box_dim": (with_box, U32),
    "rank": (with_rank, U32),
}


def _read(issuer: Issuer, location: Location, size: int) -> Array:
    """`size` bytes as words of 64 bits, read by the thread."""
    addresses, threads = _words(issuer, location, size)
    if location.space == "global":
        return issuer.batch.memory.load(addresses, _WORD)
    rows = issuer.batch.blocks[threads]
    return issuer.batch.shared.load(rows, addresses, _WORD, threads)


def _write(issuer: Issuer, location: Location, words: Array) -> None:
    addresses, threads = _words(issuer, location, words.nbytes)
    if location.space == "global":
        issuer.batch.memory.store(addresses, _WORD, words)
    else:
        issuer.batch.shared.store(issuer.batch.blocks[threads], addresses, _WORD, threads, words)


def _words(issuer: Issuer, location: Location, size: int) -> tuple[Array, Array]:
    places = np.arange(0, size, _WORD, dtype=np.uint64)
    return np.uint64(issuer.address(location)) + places, np.full(places.size, issuer.thread)


@dataclass
class Replace:
    """tensormap.replace of one field. `dimension`: for which it is."""

    location: Location
    change: Change
    dimension: int
    value: int
    dtype: np.dtype
    place: Place | None
    family: str = "store"

    def run(self, batch: Batch) -> None:
        for issuer in issuers(batch):
            words = list(struct.unpack(f"<{BYTES // _WORD}Q", _read(issuer, self.location, BYTES).tobytes()))
            self.change(words, self.dimension, issuer.value(self.value, self.dtype.str))
            _write(issuer, self.location, np.array(words, np.uint64))


@dataclass
class CopyMap:
    """tensormap.cp_fenceproxy: from shared to global memory, once for the warp."""

    target: Location
    source: Location
    size: int
    place: Place | None
    family: str = "store"

    def run(self, batch: Batch) -> None:
        warps: set[int] = set()
        for issuer in issuers(batch):
            if issuer.warp not in warps:
                warps.add(issuer.warp)
                _write(issuer, self.target, _read(issuer, self.source, self.size))


def _replace(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.one_of(("tile",))
    change, dtype = _FIELDS[words.one_of(tuple(_FIELDS))]
    space = words.space(("global", "shared"))
    words.one_of(("b1024",))
    words.kind((f"b{8 * dtype.itemsize}",))
    words.done()
    address, *dimension, value = instruction.operands
    number = dimension[0] if dimension else Immediate(0, "int")
    if not isinstance(number, Immediate) or space == "generic":
        raise unsupported(instruction)
    lowering.note_access(space, _WORD)
    slot = lowering.slots.source(value, dtype, instruction)
    location = lowering.location(address, space, instruction)
    return Replace(location, change, number.bits, slot, dtype, instruction.place)


def _copy(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    target, source, size = instruction.operands
    if not isinstance(size, Immediate) or "shared::cta" not in instruction.words:
        raise unsupported(instruction)
    lowering.note_access("shared", _WORD)
    places = (lowering.location(target, "global", instruction), lowering.location(source, "shared", instruction))
    return CopyMap(*places, size.bits, instruction.place)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    "tensormap.replace": _replace,
    "tensormap.cp_fenceproxy": _copy,
}
