"""The emulated device's counts of one call, as they cross the wire."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cutesmith_evaluator.emulator.counts import Access, Counts, Traffic
from cutesmith_evaluator.types import AccessCounts, KernelCounts

_ROW = 128  # bytes of shared memory that one pass reads or writes
_MOST = 16  # accesses of a kernel that are told
_SECTOR = 32


def kernel_counts(name: str, counts: Counts, file: Path) -> KernelCounts:
    """The counts of a kernel's launches, those of blocks that were left out put at the others' mean.

    `file`: the candidate's; lines are told of that file alone.
    """
    share = counts.blocks / max(counts.blocks_run, 1)
    shared = _of(counts.traffic, "shared")
    outside = [*_of(counts.traffic, "global"), *_of(counts.traffic, "atomic")]
    conflicts = sum(each.extra_passes for each in shared)
    costly = sorted(counts.accesses.items(), key=lambda found: -_cost(found[1]))[:_MOST]
    return KernelCounts(
        kernel=name,
        blocks=counts.blocks,
        instructions=round(share * counts.thread_instructions),
        global_bytes=round(share * sum(each.bytes for each in outside)),
        sectors=round(share * sum(each.sectors for each in outside)),
        shared_passes=round(share * (conflicts + sum(max(each.requests, each.bytes // _ROW) for each in shared))),
        bank_conflicts=round(share * conflicts),
        threads=counts.threads,
        accesses=tuple(_access(access, traffic, share, file) for access, traffic in costly),
    )


def _access(access: Access, traffic: Traffic, share: float, file: Path) -> AccessCounts:
    here = access.place is not None and Path(access.place.file).name == file.name
    return AccessCounts(
        what=access.what,
        line=access.place.line if access.place is not None and here else None,
        width=access.unit,
        requests=round(share * traffic.requests),
        bytes=round(share * traffic.bytes),
        sectors=round(share * traffic.sectors),
        bank_conflicts=round(share * traffic.extra_passes),
    )


def _cost(traffic: Traffic) -> int:
    """Bytes that pass through the memory's paths, whatever they were asked for."""
    return traffic.sectors * _SECTOR + traffic.extra_passes * _ROW + traffic.requests


def _of(traffic: Mapping[str, Traffic], space: str) -> list[Traffic]:
    return [each for name, each in traffic.items() if name.startswith(space)]
