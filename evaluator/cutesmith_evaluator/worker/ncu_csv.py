"""Reads what `ncu --csv --page raw` prints: a line of names, a line of units, a line for each launch."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from cutesmith_evaluator.types import KernelMeasures

TIME = "gpu__time_duration.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
LEVEL2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
LEVEL1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"
CORES = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
REGISTERS = "launch__registers_per_thread"
SHARED = ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic")
GRID, BLOCK = "launch__grid_size", "launch__block_size"
LIMITS = {
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "warps",
    "launch__occupancy_limit_blocks": "blocks",
}
_PIPE = "pipe_lsu_mem"
LOADS = (f"l1tex__t_sectors_{_PIPE}_global_op_ld.sum", f"l1tex__t_requests_{_PIPE}_global_op_ld.sum")
STORES = (f"l1tex__t_sectors_{_PIPE}_global_op_st.sum", f"l1tex__t_requests_{_PIPE}_global_op_st.sum")
CONFLICTS = f"l1tex__data_bank_conflicts_{_PIPE}_shared.sum"
SPILLS = (f"l1tex__t_sectors_{_PIPE}_local_op_ld.sum", f"l1tex__t_sectors_{_PIPE}_local_op_st.sum")
STALLS = {
    f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio": words
    for name, words in {
        "long_scoreboard": "global memory",
        "short_scoreboard": "shared memory",
        "barrier": "a barrier",
        "membar": "a fence",
        "math_pipe_throttle": "an arithmetic unit",
        "mio_throttle": "the shared-memory queue",
        "lg_throttle": "the global-memory queue",
        "wait": "a fixed latency",
        "sleeping": "its own sleep",
        "gmma": "tensor cores",
    }.items()
}
METRICS = (
    TIME, READ, WRITTEN, DRAM, LEVEL2, LEVEL1, CORES, OCCUPANCY, REGISTERS, *SHARED, GRID, BLOCK, *LIMITS,
    *LOADS, *STORES, CONFLICTS, *SPILLS, *STALLS,
)  # fmt: skip

_PREFIXES = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS = ("second", "s", "byte", "B")


class NcuFormatError(ValueError):
    """The text is no table of launches. `str()` says what it is instead."""


@dataclass(frozen=True)
class Launch:
    """One launch. `values` by metric, in seconds, bytes, percent or plain numbers; what was not told is left out."""

    kernel: str
    values: Mapping[str, float]


def launches(text: str) -> tuple[Launch, ...]:
    """Raises NcuFormatError where there is no table. Lines of ncu's own ("==PROF== …") may lie around it."""
    try:
        rows = list(csv.reader(line for line in text.splitlines() if not line.startswith("==")))
    except csv.Error as error:
        raise NcuFormatError(f"no table of kernels in ncu's output: {error}") from error
    start = next((place for place, row in enumerate(rows) if {"ID", "Kernel Name"} <= set(row)), None)
    if start is None or start + 1 >= len(rows):
        raise NcuFormatError(f"no table of kernels in ncu's output: {_last_line(text)}")
    names, units = rows[start], rows[start + 1]
    found = [dict(zip(names, row, strict=False)) for row in rows[start + 2 :] if len(row) == len(names)]
    scales = {name: _scale(unit) for name, unit in zip(names, units, strict=False)}
    return tuple(Launch(row["Kernel Name"], _values(row, scales)) for row in found)


def by_kernel(found: Iterable[Launch]) -> tuple[KernelMeasures, ...]:
    """Launches of a kernel as one, the kernel that takes longest first."""
    named = sorted(found, key=lambda launch: launch.kernel)
    kernels = [_measures(name, tuple(group)) for name, group in groupby(named, lambda launch: launch.kernel)]
    return tuple(sorted(kernels, key=lambda kernel: -kernel.us))


def _values(row: Mapping[str, str], scales: Mapping[str, float]) -> dict[str, float]:
    numbers = {name: _number(row.get(name, "")) for name in METRICS}
    return {name: number * scales.get(name, 1.0) for name, number in numbers.items() if number is not None}


def _number(text: str) -> float | None:
    """Digits may be grouped: 1,234.5."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _scale(unit: str) -> float:
    """Of a unit of time or of bytes, also a second or a block: "usecond", "us", "Kbyte", "KB", "Kbyte/block"."""
    plain = unit.partition("/")[0]
    for base in _UNITS:
        prefix = plain.removesuffix(base)
        if prefix != plain and prefix in _PREFIXES:
            return _PREFIXES[prefix]
    return 1.0


def _measures(kernel: str, group: Sequence[Launch]) -> KernelMeasures:
    first = group[0].values
    limits = {LIMITS[name]: first[name] for name in LIMITS if name in first}
    return KernelMeasures(
        kernel=kernel,
        launches=len(group),
        us=(_sum(group, TIME) or 0.0) * 1e6,
        blocks=_whole(first.get(GRID)),
        threads=_whole(first.get(BLOCK)),
        dram_bytes=_sum(group, READ, WRITTEN),
        dram_share=_share(group, DRAM),
        l2_share=_share(group, LEVEL2),
        l1_share=_share(group, LEVEL1),
        sm_share=_share(group, CORES),
        occupancy=_share(group, OCCUPANCY),
        occupancy_limit=min(limits, key=lambda name: limits[name]) if limits else None,
        registers=_whole(first.get(REGISTERS)),
        shared_bytes=_whole(_sum(group[:1], *SHARED)),
        load_sectors=_quotient(group, *LOADS),
        store_sectors=_quotient(group, *STORES),
        bank_conflicts=_sum(group, CONFLICTS),
        spill_sectors=_sum(group, *SPILLS),
        stalls=_stalls(group),
    )


def _sum(group: Sequence[Launch], *names: str) -> float | None:
    found = [launch.values[name] for launch in group for name in names if name in launch.values]
    return sum(found) if found else None


def _mean(group: Sequence[Launch], name: str) -> float | None:
    """Weighted by the launches' time."""
    found = [(launch.values[name], launch.values.get(TIME, 1.0)) for launch in group if name in launch.values]
    total = sum(weight for _, weight in found)
    return sum(value * weight for value, weight in found) / total if total else None


def _share(group: Sequence[Launch], name: str) -> float | None:
    percent = _mean(group, name)
    return None if percent is None else percent / 100


def _quotient(group: Sequence[Launch], above: str, below: str) -> float | None:
    top, bottom = _sum(group, above), _sum(group, below)
    return top / bottom if top is not None and bottom else None


def _stalls(group: Sequence[Launch]) -> tuple[tuple[str, float], ...]:
    found = [(words, _mean(group, name)) for name, words in STALLS.items()]
    return tuple(sorted(((words, ratio) for words, ratio in found if ratio), key=lambda stall: -stall[1]))


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing was printed"
