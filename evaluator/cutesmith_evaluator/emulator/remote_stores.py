"""st.async: a store into the shared memory of a block of the cluster that completes at an mbarrier there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cutesmith_evaluator.emulator.access import Location
from cutesmith_evaluator.emulator.bulk import complete, issuers
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import DTYPES, Words, unsupported
from cutesmith_evaluator.emulator.memory import UNITS
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Group

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.lowering import Lowering


@dataclass
class StoreAsync:
    """`sources`: slots of the values of one store, each `element` wide."""

    target: Location
    mbarrier: Location
    element: np.dtype
    sources: Sequence[int]
    place: Place | None
    family: str = "bulk copy"

    def run(self, batch: Batch) -> None:
        unit = self.element.itemsize * len(self.sources)
        assert batch.order is not None
        for issuer in issuers(batch):
            row, address = issuer.shared(self.target)
            barrier_row, barrier = issuer.shared(self.mbarrier)
            values = np.array([issuer.value(slot, self.element.str) for slot in self.sources], self.element)
            agent = batch.mbarriers.loader(barrier_row, barrier, issuer.warp)
            pieces = batch.shared.put(row, address, values.view(UNITS[unit]), issuer.position)
            batch.order.async_write(pieces, agent, address, issuer.position)
            complete(issuer, barrier_row, barrier, unit)


def _store(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.flag("weak")
    words.one_of(("shared::cluster",))
    words.one_of(("mbarrier::complete_tx::bytes",))
    count = words.number() or 1
    kind = words.kind(("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"))
    words.done()
    target, value, barrier = instruction.operands
    items = value.items if isinstance(value, Group) else (value,)
    element = np.dtype(f"u{DTYPES[kind].itemsize}")
    if len(items) != count or element.itemsize * count > 16:
        raise unsupported(instruction)
    lowering.note_access("shared", element.itemsize * count)
    return StoreAsync(
        lowering.location(target, "shared", instruction),
        lowering.location(barrier, "shared", instruction),
        element,
        [lowering.slots.source(item, element, instruction) for item in items],
        instruction.place,
    )


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {"st.async": _store}
