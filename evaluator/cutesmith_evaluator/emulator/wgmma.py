"""wgmma: a warp group multiplies tiles, of which at least one lies in shared memory, while its threads go on.

Here the product is made at once, warp by warp: a warp's rows need only its own part of A and all of B. Until a warp has
waited for the group, its registers are not to be looked at, and the shared memory is being read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.bulk import Issuer
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.fragments import (
    ROWS,
    SIZES,
    decoded,
    left_operand,
    packed_registers,
    stacked,
    unpacked,
)
from cutesmith_evaluator.emulator.memory import AccessFaultError
from cutesmith_evaluator.emulator.operand_tiles import OperandTile, described
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.steps import Target
from cutesmith_evaluator.emulator.whole_warps import WARP, running_warps, spread_over

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
Product = Callable[[Array, Array, Array], Array]  # (w, 16, k), (w, n, k), (w, 16, n) → (w, 16, n)
_GROUP = 4  # warps


class WarpGroups:
    """Groups of wgmma of each warp of a batch, the registers that they still use, and fences before their use."""

    def __init__(self, warps: int) -> None:
        self._committed, self._done, self._fences = np.zeros((3, warps), np.int64)
        self._used: dict[int, Array] = {}  # by slot: the group of each warp that uses it last
        self._touched: dict[int, Array] = {}  # by slot: the fences of each warp before others touched it last

    def present(self, warp: int) -> int:
        """The number of the group that the warp's next commit closes."""
        return int(self._committed[warp]) + 1

    def use(self, slots: Sequence[int], warps: Array) -> None:
        for slot in slots:
            used = self._used.setdefault(slot, np.zeros(self._committed.size, np.int64))
            used[warps] = self._committed[warps] + 1

    def commit(self, warps: Array) -> None:
        self._committed[warps] += 1

    def wait(self, batch: Batch, warps: Array, left: int) -> None:
        self._done[warps] = np.maximum(self._done[warps], self._committed[warps] - left)
        assert batch.order is not None
        for warp in warps.tolist():
            batch.order.complete(batch.order.wgmma(warp, int(self._done[warp])))

    def fence(self, warps: Array) -> None:
        self._fences[warps] += 1

    def touch(self, batch: Batch, slots: Sequence[int]) -> None:
        """By another instruction than wgmma, in the warps that run."""
        running = slice(None) if batch.mask is None else batch.mask.reshape(-1, WARP).any(axis=1)
        for slot in slots:
            touched = self._touched.setdefault(slot, np.full(self._fences.size, -1))
            touched[running] = self._fences[running]

    def check_fenced(self, slots: Sequence[int], warps: Array) -> None:
        """Raises AccessFaultError when a warp has had no fence, or touched one of the registers after its last."""
        late = self._fences[warps] == 0
        words = "starts a wgmma before any wgmma.fence of its warp"
        for slot in slots if not late.any() else ():
            touched = self._touched.get(slot)
            if touched is not None and (late := touched[warps] == self._fences[warps]).any():
                words = "starts a wgmma on a register that its warp has used since the last wgmma.fence"
                break
        if late.any():
            raise AccessFaultError("missing-wgmma-fence", words, WARP * int(np.flatnonzero(late)[0]), 0)

    def check(self, batch: Batch, slots: Sequence[int]) -> None:
        """Raises AccessFaultError when a warp that runs touches a register too early."""
        for slot in slots:
            used = self._used.get(slot)
            if used is None:
                continue
            early = np.repeat(used > self._done, WARP)[batch.active()]
            if early.any():
                words = (
                    "touches a register that a wgmma of its warp may still be using; wgmma.wait_group has to come first"
                )
                raise AccessFaultError("in-flight-register", words, int(np.flatnonzero(early)[0]), 0)


@dataclass
class Watched:
    """A step that touches registers of wgmma. `moves`: it only gives one a value that is there, as compilers write what
    makes no instruction of a GPU, on either side of a fence: a program's zeros before one are often after it in PTX.
    """

    step: Step
    slots: Sequence[int]
    moves: bool = False

    @property
    def place(self) -> Place | None:
        return self.step.place

    @property
    def family(self) -> str:
        return self.step.family

    def run(self, batch: Batch) -> None:
        batch.warp_groups.check(batch, self.slots)
        if not self.moves:
            batch.warp_groups.touch(batch, self.slots)
        self.step.run(batch)


@dataclass(frozen=True)
class Reader:
    """A warp, its first thread's place among those that run, and the rows of a tile that it multiplies."""

    warp: int
    position: int
    first: int
    count: int


@dataclass(frozen=True)
class Tile:
    """An operand in shared memory. `descriptor`: a slot; `rows`: of all of it; `outer`: k is its outer dimension."""

    descriptor: int
    kind: str
    rows: int
    outer: bool

    def fetch(self, batch: Batch, readers: Sequence[Reader]) -> Array:
        """(readers, rows, k) float32 or int32. What several warps read is read once, and noted for each of them."""
        known: dict[tuple[int, int, int], tuple[Array, Array, int]] = {}
        found = []
        assert batch.order is not None
        for reader in readers:
            bits = int(Issuer(batch, reader.position, reader.warp * WARP).value(self.descriptor, "u8"))
            row = int(batch.blocks[reader.warp * WARP])
            key = (row, bits, reader.first)
            if key not in known:
                known[key] = self._read(batch, row, described(bits), reader)
            elements, pieces, lowest = known[key]
            agent = batch.order.wgmma(reader.warp, batch.warp_groups.present(reader.warp))
            batch.order.async_read(pieces, agent, lowest, reader.position)
            found.append(elements)
        return np.stack(found)

    def _read(self, batch: Batch, row: int, tile: OperandTile, reader: Reader) -> tuple[Array, Array, int]:
        """Elements, the pieces of memory that they are made of, and the lowest address."""
        first, count = reader.first, reader.count
        addresses = tile.along_rows(first, count) if self.outer else tile.along_k(first + np.arange(count))
        data, pieces = batch.shared.take(row, addresses.reshape(-1), reader.position)
        elements = decoded(data.view(f"u{SIZES[self.kind]}"), self.kind)
        laid = elements.reshape(-1, count).T if self.outer else elements.reshape(count, -1)
        return laid, pieces, int(addresses.min())


@dataclass
class MultiplyGroup:
    """wgmma.mma_async. `a`: registers, or a tile; `scale`: the slot of whether what was in D is added."""

    a: Sequence[int] | Tile
    b: Tile
    d: Sequence[int]
    results: Sequence[Target | None]
    kinds: tuple[str, str]
    accumulator: str
    scale: int
    signs: tuple[int, int]
    product: Product
    place: Place | None
    family: str = "matrix multiply"

    def run(self, batch: Batch) -> None:
        warps = running_warps(batch, "wgmma")
        numbers = np.arange(batch.size // WARP)[warps]
        positions = range(0, WARP * len(numbers), WARP)
        registers = [*self.d, *([] if isinstance(self.a, Tile) else self.a)]
        batch.warp_groups.check_fenced(registers, numbers)
        a = self._left(batch, numbers, positions)
        pairs = zip(numbers.tolist(), positions, strict=True)
        b = self.b.fetch(batch, [Reader(warp, position, 0, self.b.rows) for warp, position in pairs])
        a, b = (operand if sign == 1 else -operand for operand, sign in zip((a, b), self.signs, strict=True))
        result = self.product(a, b, self._added(batch, numbers))
        batch.counts.products += result.size * a.shape[-1]
        # The columns of D are held in blocks of 8, each as mma.sync holds its own.
        blocks = np.ascontiguousarray(result.reshape(len(numbers), ROWS, -1, 8).transpose(2, 0, 1, 3))
        columns = [column for block in blocks for column in packed_registers(block, self.accumulator)]
        for target, column in zip(self.results, columns, strict=True):
            if target is not None:
                batch.put(target, spread_over(batch, warps, column))
        batch.warp_groups.use(registers, numbers)

    def _left(self, batch: Batch, numbers: Array, positions: Sequence[int]) -> Array:
        if not isinstance(self.a, Tile):
            return left_operand(stacked(batch, self.a, numbers), self.kinds[0])
        in_block = batch.shape.padded // WARP
        pairs = zip(numbers.tolist(), positions, strict=True)
        rows = [Reader(warp, position, ROWS * (warp % in_block % _GROUP), ROWS) for warp, position in pairs]
        return self.a.fetch(batch, rows)

    def _added(self, batch: Batch, numbers: Array) -> Array:
        registers = stacked(batch, self.d, numbers)
        each = 2 if self.accumulator == "f16" else 4  # registers of a block of 8 columns
        parts = registers.reshape(len(numbers), -1, each, WARP)
        blocks = unpacked(np.ascontiguousarray(parts).reshape(-1, each, WARP), self.accumulator)
        whole = blocks.reshape(len(numbers), -1, ROWS, 8).transpose(0, 2, 1, 3).reshape(len(numbers), ROWS, -1)
        kept = batch.spread(batch.values[self.scale]).reshape(-1, WARP)[numbers, 0]
        return np.where(kept[:, None, None], whole, whole.dtype.type(0))


@dataclass
class GroupFence:
    """wgmma.fence, where the four warps of a group come together; a step and its gate."""

    place: Place | None
    family: str = "other"
    timed: bool = False

    def run(self, batch: Batch) -> None:
        batch.warp_groups.fence(np.arange(batch.size // WARP)[running_warps(batch, "wgmma.fence")])

    def passes(self, batch: Batch) -> Array:
        here = batch.alive if batch.mask is None else batch.mask
        late = (batch.alive & ~here).reshape(batch.shape.count, -1)
        groups = np.add.reduceat(late, np.arange(0, batch.shape.padded, _GROUP * WARP), axis=1) == 0
        return np.repeat(groups, _GROUP * WARP, axis=1)[:, : batch.shape.padded].reshape(-1)

    def waits_for(self, batch: Batch) -> str:
        return "waits at wgmma.fence for the other warps of its warp group"


@dataclass
class CommitGroup:
    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        batch.warp_groups.commit(np.arange(batch.size // WARP)[running_warps(batch, "wgmma.commit_group")])


@dataclass
class WaitGroup:
    """`left`: groups that need not be done."""

    left: int
    place: Place | None
    family: str = "other"

    def run(self, batch: Batch) -> None:
        warps = np.arange(batch.size // WARP)[running_warps(batch, "wgmma.wait_group")]
        batch.warp_groups.wait(batch, warps, self.left)
