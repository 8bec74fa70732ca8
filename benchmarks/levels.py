"""KernelBench's levels as JSON.

`python benchmarks/levels.py [RESULTS.jsonl]` writes results/level1.json and results/level2.json. Each holds `device`,
`date`, `command`, `totals` under every convention, and `tasks` in the form that `cutesmith bench` gives them;
`read_fraction` is the bandwidth over that of a sum measured in the same run, for what mostly reads.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cutesmith_server.bench.totals import BASELINES, totals
from records import RESULTS, read_lines

Record = dict[str, Any]


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "memory_bound.jsonl"
    latest = {line["case"]: line for line in read_lines(source)}
    for level in (1, 2):
        records = sorted((r for r in latest.values() if level_of(r) == level), key=number_of)
        if records:
            (RESULTS / f"level{level}.json").write_text(json.dumps(summary(records, source), indent=1) + "\n")


def level_of(record: Record) -> int | None:
    """Cases of level 1 begin with their number, those of level 2 with "L2"; None: another case."""
    first = record["case"].split()[0]
    return 1 if first.isdigit() else 2 if first == "L2" else None


def number_of(record: Record) -> int:
    return next(int(word) for word in record["case"].split() if word.isdigit())


def summary(records: list[Record], source: Path) -> Record:
    tasks = [task_of(record) for record in records]
    return {
        "device": records[0]["environment"]["device"],
        "date": max(record["date"] for record in records),
        "command": f"python benchmarks/prepared.py measure FOLDER {source.name}",
        "totals": [totals(tasks, baseline).to_json() for baseline in BASELINES],
        "tasks": tasks,
    }


def task_of(record: Record) -> Record:
    identity = {"level": level_of(record), "id": number_of(record), "name": record["case"]}
    if "failed" in record:
        empty = {"precision": None, "error_ratio": None, "speedup": dict.fromkeys(BASELINES), "times_ms": {}}
        return identity | {"ok": False, "remark": record["failed"], "roofline_fraction": None} | empty
    best, timing = record["best"], record["best"]["timing"]
    arms = {arm["name"]: arm for arm in timing["arms"]}
    medians = {name: arm["median_ms"] / arms["candidate"]["median_ms"] for name, arm in arms.items()}
    paired = {r["arm"]: r["ratio"] for r in timing.get("ratios", ()) if r["base"] == "candidate"}
    ratios = medians | paired
    gbps = timing["bytes"] / arms["candidate"]["median_ms"] / 1e6
    return identity | {
        "ok": best["ok"],
        "precision": best["precision"],
        "error_ratio": best["error"]["ratio"] if best["error"] else None,
        "speedup": {baseline: ratios.get(baseline) for baseline in BASELINES},
        "times_ms": {name: _interval(arm) for name, arm in arms.items()},
        "roofline_fraction": timing["fraction_of_copy"],
        "read_fraction": gbps / record["read_gbps"] if "read_gbps" in record else None,
        "schedule": best["schedule"],
    }


def _interval(arm: Record) -> Record:
    return {"median": arm["median_ms"], "low": arm["low_ms"], "high": arm["high_ms"], "samples": arm["samples"]}


if __name__ == "__main__":
    main()
