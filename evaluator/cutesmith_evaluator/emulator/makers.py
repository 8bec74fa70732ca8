"""The makers of all steps that are no plain arithmetic, by the first words of the instruction.

A maker takes the lowering of its kernel and the opcode's words after its name. A family of instructions has a file
of its own with a `MAKERS`; the longest name wins, so that "cp.async.bulk" and "cp.async" may come from two files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cutesmith_evaluator.emulator import (
    async_copies,
    bulk_makers,
    carries,
    map_changes,
    matrices,
    mbarrier_makers,
    memory_makers,
    mma,
    move_makers,
    remote_stores,
    warp_makers,
    warp_sums,
    wgmma_makers,
)
from cutesmith_evaluator.emulator.kinds import Words
from cutesmith_evaluator.emulator.program import Step

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.lowering import Lowering

MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    **async_copies.MAKERS,
    **carries.MAKERS,
    **matrices.MAKERS,
    **map_changes.MAKERS,
    **memory_makers.MAKERS,
    **mma.MAKERS,
    **move_makers.MAKERS,
    **warp_makers.MAKERS,
    **warp_sums.MAKERS,
    **mbarrier_makers.MAKERS,
    **bulk_makers.MAKERS,
    **remote_stores.MAKERS,
    **wgmma_makers.MAKERS,
}
