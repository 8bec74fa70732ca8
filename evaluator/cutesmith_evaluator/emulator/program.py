"""A kernel ready to run: slots for all values, and blocks of steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.ptx import Kernel

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch


_SEEN_BY_OTHERS = frozenset(("store", "atomic", "barrier", "mbarrier", "bulk copy"))


class Gate(Protocol):
    """What holds threads before a block. All methods are for the threads that the batch's mask names.

    `timed`: when nobody else can go on, they may go on all the same, and see that they waited in vain.
    """

    @property
    def place(self) -> Place | None: ...
    @property
    def timed(self) -> bool: ...
    def passes(self, batch: Batch) -> Any:
        """A boolean per thread of the batch."""

    def waits_for(self, batch: Batch) -> str:
        """What the first of the threads waits for, in words."""
        ...


class Step(Protocol):
    """One instruction, for all threads of a batch that its mask names. `family`: what it counts as."""

    @property
    def place(self) -> Place | None: ...
    @property
    def family(self) -> str: ...
    def run(self, batch: Batch) -> None: ...


@dataclass(frozen=True)
class Branch:
    """To block `target` where the predicate in `slot` holds (is false: `negated`); everywhere without a slot."""

    target: int
    slot: int | None
    negated: bool


@dataclass(frozen=True)
class Exit:
    slot: int | None = None
    negated: bool = False


@dataclass(frozen=True)
class Reduction:
    """bar.red: of a predicate of all that take part, in the slot `predicate`, to the register `slot` of each."""

    name: str
    predicate: int
    negated: bool
    slot: int
    dtype: np.dtype


@dataclass(frozen=True)
class Barrier:
    """bar: `number` and `count` are slots; without a count all threads of the block take part.

    `waits`: False for bar.arrive. `aligned`: all threads of a warp have to come to it together. `guard`: the slot of
    the predicate of those that come, and whether it is negated.
    """

    number: int
    count: int | None
    place: Place | None
    waits: bool = True
    aligned: bool = True
    guard: tuple[int, bool] | None = None
    reduction: Reduction | None = None


@dataclass
class BasicBlock:
    """Steps without a jump, then `end` (None: the next block).

    `member_slot`: the lanes its first step waits for. `gate`: what that step waits for, under `guard` (slot, negated).
    """

    steps: list[Step] = field(default_factory=list)
    end: Branch | Exit | Barrier | None = None
    member_slot: int | None = None
    gate: Gate | None = None
    guard: tuple[int, bool] | None = None
    place: Place | None = None
    families: dict[str, int] = field(default_factory=dict)

    @property
    def changes_something(self) -> bool:
        """Whether other threads can see that it ran."""
        return not _SEEN_BY_OTHERS.isdisjoint(self.families)


@dataclass(frozen=True)
class Program:
    """`constants`: values by slot that are known; `specials`: slots of the machine's registers by name."""

    kernel: Kernel
    blocks: tuple[BasicBlock, ...]
    slots: int
    constants: dict[int, Any]
    specials: dict[str, int]
    shared_bytes: int  # declared, without the launch's dynamic part
    dynamic_offset: int  # where that part begins
    local_bytes: int
    grain: int  # the smallest access to shared or local memory, in bytes
    by_warps: bool  # warps wait for each other by other means than barriers of the whole block
