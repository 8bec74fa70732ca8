"""Writes the tables of docs/performance.md, between their markers, from the results files."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from pages import put
from quack_peer import page as quack_page
from records import RESULTS, read_lines
from suite import ROOT, kernelbench_cases, reducing_cases, serving_cases

PAGE = ROOT / "docs" / "performance.md"
NOT_MEASURED = "not measured yet"
Record = dict[str, Any]

TIMES_HEAD = (
    "| case | eager ms | torch.compile ms | ours ms | MB | of a copy | error ours / eager | precision | in compile |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |"
)
OVERHEAD_HEAD = (
    "| example | kernel µs | op µs | guard and op µs | over the kernel | module µs | under torch.compile µs |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)

VERDICTS_HEAD = (
    "| kernel | rounds | noise | of equals | called faster | called slower | planted | trials | found | withheld |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def main() -> None:
    measured = latest(read_lines(RESULTS / "memory_bound.jsonl"))
    overhead = latest(read_lines(RESULTS / "call_overhead.jsonl"))
    level1 = sorted((*kernelbench_cases(), *reducing_cases()), key=lambda case: int(case.name.split()[0]))
    level2 = sorted((name for name in measured if name.startswith("L2 ")), key=lambda name: int(name.split()[1]))
    verdicts = read_lines(RESULTS / "timing_verdicts.jsonl")  # of every run: each adds trials
    put(
        PAGE,
        kernelbench=times_table(select(measured, (case.name for case in level1))),
        level2=times_table(select(measured, level2)),
        serving=times_table(select(measured, (case.name for case in serving_cases()))),
        overhead=table(OVERHEAD_HEAD, overhead_row, list(overhead.values())),
        verdicts=table(VERDICTS_HEAD, verdicts_row, list(verdicts)),
        quack=quack_page(),
    )


def latest(records: Iterable[Record]) -> dict[str, Record]:
    return {record["case"]: record for record in records}


def select(records: dict[str, Record], names: Iterable[str]) -> list[Record]:
    return [records[name] for name in names if name in records]


def times_table(records: list[Record]) -> str:
    return table(TIMES_HEAD, times_row, records)


def table(head: str, row: Callable[[Record], str], records: list[Record]) -> str:
    """The rows, and below them where and when they were measured."""
    if not records:
        return NOT_MEASURED
    return "\n".join([head, *map(row, records), "", provenance(records)])


def provenance(records: list[Record]) -> str:
    """One line per environment that the records name."""
    seen: dict[str, set[str]] = {}
    for record in records:
        env = record["environment"]
        where = f"{env['device']}, driver {env['driver']}, torch {env['torch']}, nvidia-cutlass-dsl {env['dsl']}"
        seen.setdefault(where, set()).add(record["date"])
    return "\n".join(f"Measured on {where}; {', '.join(sorted(dates))}." for where, dates in seen.items())


def times_row(record: Record) -> str:
    if "failed" in record:
        return f"| {record['case']} | no result: {one_line(record['failed'])} | | | | | | | |"
    best, timing = record["best"], record["best"]["timing"]
    ms = {arm["name"]: f"{arm['median_ms']:.4f}" for arm in timing["arms"]}
    cells = [
        record["case"],
        ms.get("eager", "–"),
        ms.get("compile", "–"),
        ms["candidate"],
        f"{timing['bytes'] / 1e6:.1f}",
        f"{timing['fraction_of_copy']:.3f}",
        errors_of(best["error"]),
        best["precision"],
        f"×{record['in_compile']['ratio']:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def errors_of(error: Record | None) -> str:
    """Indices have none, nor has what was not compared by its size; where the value is 0, there are only roundings."""
    if error and error["eager"] > 1:
        return "rounding noise"
    return f"{error['candidate']:.1e} / {error['eager']:.1e}" if error else "–"


def overhead_row(record: Record) -> str:
    us = record["us"]
    over = us["guarded_op"] - us["raw"]
    values = [us["raw"], us["op"], us["guarded_op"], over, us["direct"], us["compiled"]]
    return f"| {record['case']} | {' | '.join(f'{value:.1f}' for value in values)} |"


def verdicts_row(record: Record) -> str:
    """Rounds and noise are medians over the trials."""
    trials = [*record["null_trials"], *record["planted_trials"]]
    rounds, noise = (statistics.median(trial[key] for trial in trials) for key in ("rounds", "noise"))
    null = [record["null"], record["faster"], record["slower"]]
    planted = [f"{record['truth'][0] - 1:.2%}", record["planted"], record["found"], record["withheld"]]
    return f"| {' | '.join(map(str, [record['case'], f'{rounds:.0f}', f'{noise:.2%}', *null, *planted]))} |"


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:160]


if __name__ == "__main__":
    main()
