"""ldmatrix, stmatrix and movmatrix: 8 × 8 matrices of 16-bit elements, whose rows lie in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.access import Location, shared_rows
from cutesmith_evaluator.emulator.blame import blamed
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import U32, Words, unsupported
from cutesmith_evaluator.emulator.memory import UNITS, AccessFaultError
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Group, Operand
from cutesmith_evaluator.emulator.steps import Target
from cutesmith_evaluator.emulator.whole_warps import WARP, running_warps, spread_over

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.lowering import Lowering

Array = np.ndarray[Any, np.dtype[Any]]

_ROWS, _ROW_BYTES, _QUAD = 8, 16, 4
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}


@dataclass(frozen=True)
class Rows:
    """The rows of the matrices of all running warps; lane 8 m + r has the address of row r of matrix m."""

    blocks: Array  # of each row, in order of warp, matrix, row
    addresses: Array
    threads: Array  # one of those that hold the row's elements
    places: Array  # of the lanes with the addresses, among the threads that run


def _rows(batch: Batch, location: Location, warps: Array | slice, count: int) -> Rows:
    space, addresses = location.addresses(batch, batch.active())
    lanes = np.arange(WARP) < _ROWS * count
    chosen = np.flatnonzero(np.tile(lanes, addresses.size // WARP))
    if space != "shared":
        words = f"takes a row of a matrix at 0x{int(addresses[chosen[0]]):x}, which is not in shared memory"
        raise AccessFaultError("out-of-bounds", words, int(chosen[0]), int(addresses[chosen[0]]))
    numbers = batch.numbers.reshape(-1, WARP)[warps]
    holders = numbers[:, np.tile(np.arange(_ROWS) * _QUAD + _QUAD - 1, count)].reshape(-1)
    with blamed(chosen):
        blocks, addresses = shared_rows(batch, holders, addresses[chosen])
    return Rows(blocks, addresses, holders, chosen)


@dataclass
class LoadMatrix:
    """Lane 4 r + q takes elements 2 q and 2 q + 1 of row r (`transposed`: of column r) of each matrix."""

    location: Location
    results: Sequence[Target | None]
    transposed: bool
    place: Place | None
    family: str = "load"

    def run(self, batch: Batch) -> None:
        warps, count = running_warps(batch, "ldmatrix"), len(self.results)
        rows = _rows(batch, self.location, warps, count)
        with blamed(rows.places):
            items = batch.shared.load(rows.blocks, rows.addresses, _ROW_BYTES, rows.threads)
        batch.counts.add_shared(
            "shared load", rows.addresses, batch.numbers[batch.active()][rows.places], _ROW_BYTES, self.place
        )
        words = _transposed(items.view(U32)) if self.transposed else items.view(U32)
        words = words.reshape(-1, count, WARP)
        for number, target in enumerate(self.results):
            if target is not None:
                batch.put(target, spread_over(batch, warps, words[:, number]))


@dataclass
class StoreMatrix:
    """The other way round."""

    location: Location
    sources: Sequence[int]
    transposed: bool
    place: Place | None
    family: str = "store"

    def run(self, batch: Batch) -> None:
        warps, count = running_warps(batch, "stmatrix"), len(self.sources)
        rows = _rows(batch, self.location, warps, count)
        columns = [batch.spread(batch.values[slot]).view(U32).reshape(-1, WARP)[warps] for slot in self.sources]
        words = np.stack(columns, axis=1)
        words = _transposed(words) if self.transposed else words
        items = np.ascontiguousarray(words).reshape(-1, _QUAD).view(UNITS[_ROW_BYTES])[:, 0]
        with blamed(rows.places):
            batch.shared.store(rows.blocks, rows.addresses, _ROW_BYTES, rows.threads, items)
        batch.counts.add_shared(
            "shared store", rows.addresses, batch.numbers[batch.active()][rows.places], _ROW_BYTES, self.place
        )


@dataclass
class MoveMatrix:
    """movmatrix.trans: a matrix that the warp holds, transposed."""

    source: int
    result: Target
    place: Place | None
    family: str = "shuffle"

    def run(self, batch: Batch) -> None:
        warps = running_warps(batch, "movmatrix")
        words = batch.spread(batch.values[self.source]).view(U32).reshape(-1, WARP)[warps]
        batch.put(self.result, spread_over(batch, warps, _transposed(words).reshape(-1, WARP)))


def _transposed(words: Array) -> Array:
    """Of each matrix, 32 words of two elements."""
    elements = np.ascontiguousarray(words).view(np.uint16).reshape(-1, _ROWS, _ROWS)
    return np.ascontiguousarray(elements.swapaxes(1, 2)).view(U32).reshape(words.shape)


def _form(lowering: Lowering, words: Words) -> tuple[int, bool]:
    """Matrices, and whether they are transposed."""
    words.one_of(("aligned",))
    words.one_of(("m8n8",))
    count = _COUNTS[words.one_of(tuple(_COUNTS))]
    transposed = words.flag("trans")
    words.one_of(("shared",), "generic")
    words.flag("cta")
    words.kind(("b16",))
    words.done()
    lowering.note_access("shared", _ROW_BYTES)
    return count, transposed


def _space(words: Words) -> str:
    return "shared" if any(word.startswith("shared") for word in words.instruction.words) else "generic"


def _items(operand: Operand, count: int, words: Words) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Group) else (operand,)
    if len(items) != count:
        raise unsupported(words.instruction)
    return items


def _load(lowering: Lowering, words: Words) -> Step:
    instruction, space = words.instruction, _space(words)
    count, transposed = _form(lowering, words)
    result, address = instruction.operands
    targets = [lowering.target(item, instruction) for item in _items(result, count, words)]
    return LoadMatrix(lowering.location(address, space, instruction), targets, transposed, instruction.place)


def _store(lowering: Lowering, words: Words) -> Step:
    instruction, space = words.instruction, _space(words)
    count, transposed = _form(lowering, words)
    address, value = instruction.operands
    sources = [lowering.slots.source(item, U32, instruction) for item in _items(value, count, words)]
    return StoreMatrix(lowering.location(address, space, instruction), sources, transposed, instruction.place)


def _move(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    for word in ("aligned", "m8n8", "trans"):
        words.one_of((word,))
    words.kind(("b16",))
    words.done()
    result = lowering.target(instruction.operands[0], instruction)
    if result is None:
        raise unsupported(instruction)
    return MoveMatrix(lowering.slots.source(instruction.operands[1], U32, instruction), result, instruction.place)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    "ldmatrix.sync": _load,
    "stmatrix.sync": _store,
    "movmatrix.sync": _move,
}
