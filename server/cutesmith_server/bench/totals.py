"""Totals over a benchmark under every convention in use: published tables differ in what they count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

BASELINES = ("eager", "compile")
FAST = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)  # KernelBench's fast_p: right, and faster than p times the baseline


@dataclass(frozen=True)
class Means:
    """Of speedups; None where nothing is there to take a mean of."""

    arithmetic: float | None
    geometric: float | None


@dataclass(frozen=True)
class Totals:
    """Over one baseline. `tasks` have a verdict; `measured` of them are right and timed."""

    baseline: str
    tasks: int
    right: int
    measured: int
    incorrect_is_zero: Means  # geometric: 0 as soon as one is incorrect
    fallback_is_one: Means  # the original code runs where there is no right kernel
    correct_only: Means
    fast: dict[str, float | None]  # share of all tasks, by p

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def totals(records: Iterable[dict[str, Any]], baseline: str) -> Totals:
    """`records` as `outcome.record_of` makes them. A task that is right but was not timed counts as no speedup."""
    all_records = list(records)
    speedups = [_speedup(record, baseline) for record in all_records]
    known = [speedup for speedup in speedups if speedup is not None]
    count = len(all_records)
    timed = bool(known)
    share = {f"{p:g}": sum(speedup > p for speedup in known) / count if timed and count else None for p in FAST}
    return Totals(
        baseline,
        count,
        sum(record["ok"] is True for record in all_records),
        len(known),
        _means([speedup or 0.0 for speedup in speedups] if timed else []),
        _means([1.0 if speedup is None else speedup for speedup in speedups] if timed else []),
        _means(known),
        share,
    )


def _speedup(record: dict[str, Any], baseline: str) -> float | None:
    return record["speedup"][baseline] if record["ok"] is True else None


def _means(values: Sequence[float]) -> Means:
    if not values:
        return Means(None, None)
    logs = [math.log(value) for value in values if value > 0]
    geometric = math.exp(math.fsum(logs) / len(values)) if len(logs) == len(values) else 0.0
    return Means(math.fsum(values) / len(values), geometric)
