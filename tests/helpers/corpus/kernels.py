"""Every PTX kernel of the corpus."""

from __future__ import annotations

from functools import cache

from corpus import (
    async_entries,
    atomic_entries,
    comparison_entries,
    conversion_entries,
    copy_entries,
    float_entries,
    flow_entries,
    half_entries,
    integer_entries,
    matrix_entries,
    memory_entries,
    warp_entries,
    wgmma_entries,
)
from corpus.entry import Entry

FAMILIES = {
    "integers": integer_entries,
    "floats": float_entries,
    "halves": half_entries,
    "conversions": conversion_entries,
    "comparisons": comparison_entries,
    "memory": memory_entries,
    "flow": flow_entries,
    "warps": warp_entries,
    "atomics": atomic_entries,
    "copies": copy_entries,
    "matrices": matrix_entries,
    "async": async_entries,
    "wgmma": wgmma_entries,
}


@cache
def family(name: str) -> tuple[Entry, ...]:
    return tuple(FAMILIES[name].entries())


@cache
def kernels() -> dict[str, Entry]:
    """By name, in the order of the families. Raises ValueError where a name occurs twice."""
    found: dict[str, Entry] = {}
    for name in FAMILIES:
        for entry in family(name):
            if entry.name in found:
                raise ValueError(f"two kernels of the corpus are named {entry.name}")
            found[entry.name] = entry
    return found
