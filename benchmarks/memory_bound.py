"""Runs the main job on every benchmark case on this CUDA device and appends one JSON line per case as it goes.

`--only TEXT` (repeatable) keeps cases whose name contains it; `--budget-seconds` starts no case after that time;
cases that the results file has already are left out, so that a run cut short goes on where it was. One worker process
serves all cases, where a user's job takes a fresh one for the last timing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pipeline import KeptWorker, best_of, optimize
from records import RESULTS, append_line, environment_fields, read_lines
from suite import Case, all_cases

KEPT = ("ok", "precision", "error", "timing", "speedup", "schedule", "compile_s")  # of the best candidate


def main() -> None:
    options = parse_options()
    done = {line["case"] for line in read_lines(options.results) if "failed" not in line}
    cases = [case for case in all_cases() if is_chosen(case, options.only) and case.name not in done]
    end = time.monotonic() + options.budget_seconds
    common = environment_fields()
    with tempfile.TemporaryDirectory(prefix="cutesmith-bench-") as work, KeptWorker() as worker:
        for number, case in enumerate(cases):
            if time.monotonic() > end:
                print(f"budget spent: {len(cases) - number} cases left; run again to go on", file=sys.stderr)
                return
            append_line(options.results, common | run_case(case, Path(work) / f"case_{number}", worker))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--budget-seconds", type=float, default=float("inf"))
    parser.add_argument("--results", type=Path, default=RESULTS / "memory_bound.jsonl")
    return parser.parse_args()


def is_chosen(case: Case, only: list[str]) -> bool:
    return not only or any(text in case.name for text in only)


def run_case(case: Case, folder: Path, worker: KeptWorker) -> dict[str, Any]:
    """What was measured, or `failed` with the reason."""
    start = time.monotonic()
    line: dict[str, Any] = {"case": case.name, "kind": case.kind}
    try:
        line |= measure(case, folder, worker)
    except (RuntimeError, subprocess.SubprocessError) as error:
        line["failed"] = str(error)
    line["seconds"] = round(time.monotonic() - start, 1)
    print(summary(line), flush=True)
    return line


def measure(case: Case, folder: Path, worker: KeptWorker) -> dict[str, Any]:
    file = case.write(folder)
    report = optimize(worker, file, case.qualname)
    best = best_of(report)
    if best["timing"] is None:
        raise RuntimeError(f"{case.name} was not timed: {report['stopped']}")
    ms = {arm["name"]: arm["median_ms"] for arm in best["timing"]["arms"]}
    return {
        "stopped": report["stopped"],
        "candidates": len(report["candidates"]),
        "best": {name: best[name] for name in KEPT},
        "in_compile": {"ratio": ms["adopted-compile"] / ms["adopted"]},
    }


def summary(line: dict[str, Any]) -> str:
    if "failed" in line:
        return f"{line['case']}: FAILED after {line['seconds']} s: {line['failed']}"
    timing = line["best"]["timing"]
    arms = ", ".join(f"{arm['name']} {arm['median_ms']:.4f} ms" for arm in timing["arms"])
    share = f"{timing['fraction_of_copy']:.3f} of a copy"
    return f"{line['case']}: {arms}; {share}; {line['seconds']} s"


if __name__ == "__main__":
    main()
