"""What a profiler would count: instructions by family; bytes, 32-byte sectors and bank conflicts, by line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cutesmith_evaluator.emulator.faults import Place

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.program import BasicBlock

Array = np.ndarray[Any, np.dtype[Any]]
What = Literal["global load", "global store", "atomic", "shared load", "shared store"]
_SECTOR, _BANKS, _WORD, _WARP = 32, 32, 4, 32


@dataclass
class Traffic:
    """Of one space and direction. `sectors`: for global memory; `extra_passes`: of shared memory, by conflicts."""

    requests: int = 0  # warp-wide accesses
    bytes: int = 0
    sectors: int = 0
    extra_passes: int = 0


@dataclass(frozen=True)
class Access:
    """`what`: the space and direction. `unit`: bytes that a thread moves at once."""

    what: What
    unit: int
    place: Place | None


@dataclass
class Counts:
    """Of a kernel's launches. `instructions`: by family, one for each thread that came to it. `enabled` False: no
    accesses. `blocks`: of the grids; `blocks_run`: those that ran. `products`: of elements, by tensor cores."""

    enabled: bool = True
    launches: int = 0
    blocks: int = 0
    blocks_run: int = 0
    threads: int = 0  # of the grids
    products: int = 0
    instructions: dict[str, int] = field(default_factory=dict)
    accesses: dict[Access, Traffic] = field(default_factory=dict)

    @property
    def traffic(self) -> dict[str, Traffic]:
        """By space and direction."""
        sums: dict[str, Traffic] = {}
        for access, one in self.accesses.items():
            whole = sums.setdefault(access.what, Traffic())
            whole.requests += one.requests
            whole.bytes += one.bytes
            whole.sectors += one.sectors
            whole.extra_passes += one.extra_passes
        return sums

    @property
    def thread_instructions(self) -> int:
        return sum(self.instructions.values())

    @property
    def work(self) -> int:
        """What emulation has cost, in thread-level instructions; a product of tensor cores costs about one."""
        return self.thread_instructions + self.products

    def add_block(self, block: BasicBlock, threads: int) -> None:
        for family, number in block.families.items():
            self.instructions[family] = self.instructions.get(family, 0) + number * threads

    def add_global(self, name: What, addresses: Array, threads: Array, unit: int, place: Place | None = None) -> None:
        if not self.enabled or not addresses.size:
            return
        traffic = self._traffic(Access(name, unit, place), addresses, threads)
        first, last = addresses >> np.uint64(5), (addresses + np.uint64(unit - 1)) >> np.uint64(5)
        traffic.sectors += _distinct(threads // _WARP, first.astype(np.int64))
        if (first != last).any():  # only accesses of more than a sector, which have to be aligned
            traffic.sectors += int((last - first).sum())

    def add_shared(self, name: What, addresses: Array, threads: Array, unit: int, place: Place | None = None) -> None:
        """A warp's accesses go in parts of 128 bytes; a bank gives one 4-byte word a pass."""
        if not self.enabled or not addresses.size:
            return
        traffic = self._traffic(Access(name, unit, place), addresses, threads)
        lanes = min(_WARP, 128 // unit) if unit > _WORD else _WARP
        part = threads // lanes
        words = addresses.astype(np.int64) // _WORD
        steps = max(1, unit // _WORD)
        keys = ((part[:, None] << 32) | (words[:, None] + np.arange(steps))).reshape(-1)
        keys.sort()  # np.unique is ten times as slow
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        parts = (keys >> 32) - (keys[0] >> 32)
        passes = np.bincount(parts * _BANKS + keys % _BANKS, minlength=(int(parts[-1]) + 1) * _BANKS)
        worst = passes.reshape(-1, _BANKS).max(axis=1)
        traffic.extra_passes += int((worst[worst > 0] - 1).sum())

    def _traffic(self, access: Access, addresses: Array, threads: Array) -> Traffic:
        traffic = self.accesses.setdefault(access, Traffic())
        warps = threads // _WARP
        traffic.requests += 1 + int(np.count_nonzero(warps[1:] != warps[:-1]))
        traffic.bytes += access.unit * addresses.size
        return traffic


def _distinct(groups: Array, keys: Array) -> int:
    """Distinct keys within each group; the groups come in order."""
    same_group = groups[1:] == groups[:-1]
    steps = keys[1:] - keys[:-1]
    if not (same_group & (steps < 0)).any():
        return 1 + int(np.count_nonzero(~same_group | (steps != 0)))
    order = np.lexsort((keys, groups))
    groups, keys = groups[order], keys[order]
    return 1 + int(np.count_nonzero((groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1])))
