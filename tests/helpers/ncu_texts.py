"""Output of `ncu --csv --page raw` as its documentation describes it, for kernels that were never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cutesmith_evaluator.worker import ncu_csv

COPY: dict[str, tuple[str, str]] = {  # metric → unit, value: 16 bytes a thread, near the memory's peak
    ncu_csv.TIME: ("usecond", "130.5"),
    ncu_csv.READ: ("Mbyte", "268.4"),
    ncu_csv.WRITTEN: ("Kbyte", "251,600.0"),
    ncu_csv.DRAM: ("%", "91.0"),
    ncu_csv.LEVEL2: ("%", "55.0"),
    ncu_csv.LEVEL1: ("%", "30.0"),
    ncu_csv.CORES: ("%", "22.5"),
    ncu_csv.OCCUPANCY: ("%", "88.0"),
    ncu_csv.REGISTERS: ("register/thread", "32"),
    ncu_csv.SHARED[0]: ("Kbyte/block", "1.02"),
    ncu_csv.SHARED[1]: ("byte/block", "0"),
    ncu_csv.GRID: ("", "8,192"),
    ncu_csv.BLOCK: ("", "256"),
    "launch__occupancy_limit_registers": ("block", "8"),
    "launch__occupancy_limit_shared_mem": ("block", "32"),
    "launch__occupancy_limit_warps": ("block", "8"),
    "launch__occupancy_limit_blocks": ("block", "32"),
    ncu_csv.LOADS[0]: ("sector", "1,600"),
    ncu_csv.LOADS[1]: ("", "100"),
    ncu_csv.STORES[0]: ("sector", "1,600"),
    ncu_csv.STORES[1]: ("", "100"),
    ncu_csv.CONFLICTS: ("", "0"),
    ncu_csv.SPILLS[0]: ("sector", "0"),
    ncu_csv.SPILLS[1]: ("sector", "0"),
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": ("inst", "12.5"),
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": ("inst", "0.5"),
}
_ABOUT = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Device", "CC")


def table(*launches: tuple[str, Mapping[str, tuple[str, str]]]) -> str:
    """A whole log: ncu's own lines, then names, units and a row for each (kernel, metrics); units are the first's."""
    metrics = list(launches[0][1])
    rows = [
        [*_ABOUT, *metrics],
        [""] * len(_ABOUT) + [launches[0][1][name][0] for name in metrics],
        *(
            [
                str(number),
                "71",
                "python3",
                "127.0.0.1",
                kernel,
                "1",
                "7",
                "0",
                "9.0",
                *(values[name][1] for name in metrics),
            ]
            for number, (kernel, values) in enumerate(launches)
        ),
    ]
    before = '==PROF== Connected to process 71 (/usr/bin/python3)\n==PROF== Profiling "kernel": 0%....100% - 4 passes\n'
    return before + "\n".join(map(_quoted, rows)) + "\n==PROF== Disconnected from process 71\n"


def _quoted(row: Sequence[str]) -> str:
    return ",".join(f'"{value.replace(chr(34), chr(34) * 2)}"' for value in row)
