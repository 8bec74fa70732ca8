"""A kernel ready to run: slots for all values, and blocks of steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.ptx import Kernel

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch


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
class Barrier:
    """bar.sync: `number` and `count` are slots; without a count all threads of the block take part."""

    number: int
    count: int | None
    place: Place | None


@dataclass
class BasicBlock:
    """Steps without a jump, then `end` (None: the next block). `member_slot`: the lanes its first step waits for."""

    steps: list[Step] = field(default_factory=list)
    end: Branch | Exit | Barrier | None = None
    member_slot: int | None = None
    place: Place | None = None
    families: dict[str, int] = field(default_factory=dict)


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
