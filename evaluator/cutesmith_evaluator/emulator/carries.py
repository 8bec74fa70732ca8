"""add.cc, addc, sub.cc, subc, mad.cc, madc: sums with the carry bit, which is no register of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import integers
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import BOOL, DTYPES, Words, unsupported
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.steps import Target, typed, widened

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.lowering import Lowering

Ints = Any
_KINDS = ("u32", "s32", "u64", "s64")


@dataclass
class Carried:
    """`function` of the sources and the carry that came gives the result and the carry that goes."""

    function: Callable[..., tuple[Ints, Ints]]
    sources: list[int]
    dtype: np.dtype
    carry: int  # the slot of the carry bit
    takes: bool
    leaves: bool
    result: Target | None
    place: Place | None
    family: str = "integer"

    def run(self, batch: Batch) -> None:
        values = [typed(batch.values[slot], self.dtype) for slot in self.sources]
        came = batch.values[self.carry] if self.takes else np.bool_(False)
        result, goes = self.function(*values, came.astype(self.dtype))
        if self.result is not None:
            batch.put(self.result, widened(result, self.result.dtype))
        if self.leaves:
            batch.put(Target(self.carry, BOOL, True), goes)


def _sum(a: Ints, b: Ints, came: Ints) -> tuple[Ints, Ints]:
    half = a + b
    total = half + came
    return total, (half < a) | (total < half)


def _difference(a: Ints, b: Ints, came: Ints) -> tuple[Ints, Ints]:
    """The carry is a borrow."""
    half = a - b
    return half - came, (a < b) | (half < came)


def _product(part: Callable[[Ints, Ints], Ints]) -> Callable[..., tuple[Ints, Ints]]:
    return lambda a, b, c, came: _sum(part(a, b), c, came)


def _make(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    name, *named = words.name.split(".")
    part = next((word for word in named if word in ("lo", "hi")), "") or words.one_of(("lo", "hi"), "")
    leaves = "cc" in named or words.flag("cc")
    kind = words.kind(_KINDS)
    words.done()
    dtype = np.dtype(f"u{DTYPES[kind].itemsize}")
    if bool(part) != name.startswith("mad"):
        raise unsupported(instruction)
    if part == "hi" and kind[0] == "s":
        function = _product(lambda a, b: integers.high(a.view(DTYPES[kind]), b.view(DTYPES[kind])).view(dtype))
    elif part:
        function = _product(np.multiply if part == "lo" else integers.high)
    else:
        function = _sum if name.startswith("add") else _difference
    result, *operands = instruction.operands
    if len(operands) != (3 if part else 2):
        raise unsupported(instruction, f"with {len(operands)} operands")
    sources = [lowering.slots.source(each, dtype, instruction) for each in operands]
    takes = name in ("addc", "subc", "madc")
    return Carried(
        function, sources, dtype, lowering.slots.carry(), takes, leaves, lowering.target(result, instruction),
        instruction.place,
    )  # fmt: skip


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    **dict.fromkeys(("add.cc", "addc", "sub.cc", "subc", "madc"), _make),
    **dict.fromkeys(("mad.lo.cc", "mad.hi.cc"), _make),
}
