"""The emulated device's counts of one call, as they cross the wire."""

from __future__ import annotations

from collections.abc import Mapping

from cutesmith_evaluator.emulator.counts import Counts, Traffic
from cutesmith_evaluator.types import KernelCounts

_ROW = 128  # bytes of shared memory that one pass reads or writes


def kernel_counts(name: str, counts: Counts) -> KernelCounts:
    """The counts of a kernel's launches, those of blocks that were left out put at the others' mean."""
    share = counts.blocks / max(counts.blocks_run, 1)
    shared = _of(counts.traffic, "shared")
    outside = [*_of(counts.traffic, "global"), *_of(counts.traffic, "atomic")]
    conflicts = sum(each.extra_passes for each in shared)
    return KernelCounts(
        kernel=name,
        blocks=counts.blocks,
        instructions=round(share * counts.thread_instructions),
        global_bytes=round(share * sum(each.bytes for each in outside)),
        sectors=round(share * sum(each.sectors for each in outside)),
        shared_passes=round(share * (conflicts + sum(max(each.requests, each.bytes // _ROW) for each in shared))),
        bank_conflicts=round(share * conflicts),
    )


def _of(traffic: Mapping[str, Traffic], space: str) -> list[Traffic]:
    return [each for name, each in traffic.items() if name.startswith(space)]
