"""Bytes per second of pointwise work, row softmax, layer norm and a sum over sizes from 4 KB to 8 GB, beside a copy.

As benchmarks/prepared.py in two steps: `prepare FOLDER` writes the recipes' first drafts and needs no device;
`measure FOLDER RESULTS` (results/bandwidth.jsonl) validates and times them on this CUDA device beside eager, a copy of
as many bytes and PyTorch's own sum, which reads as many, and appends a line per kernel and size that RESULTS lacks.
A size is of the bytes that the kernel reads and writes. `bandwidth_page.py` draws them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from prepared import Share, compiled_cases, measure_in_processes, prepare
from prepared_case import PreparedCase
from records import RESULTS, append_line
from suite import ROOT, Case

SIZES = (*(4096 * 4**k for k in range(11)), 8_000_000_000)  # bytes: 4 KB to 4 GB, and 8
WIDEST = 4096  # elements of a row
ARM_S = 0.1  # of timing, at most
OPERATORS = {"Pointwise": 2, "RowSoftmax": 2, "LayerNorm": 2, "Sum": 1}  # tensors of the input's size that are moved
FLOAT = 4  # bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "measure", "share"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS / "bandwidth.jsonl")
    parser.add_argument("--number", type=int, default=0)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.folder.absolute(), options.results, cases(), most=1)
    elif options.step == "measure":
        measure_in_processes(Path(__file__), options.folder.absolute(), options.results.absolute())
    else:
        measure_share(Share(options.folder, options.results, options.number))


def cases() -> list[Case]:
    """Sizes in turn, so that a run cut short has all operators."""
    file = ROOT / "benchmarks" / "tasks" / "bandwidth.py"
    return [
        Case(f"{name} {size}", file, name, "pointwise", {"SHAPE": str(shape_of(size // (moved * FLOAT)))})
        for size in SIZES
        for name, moved in OPERATORS.items()
    ]


def shape_of(elements: int) -> tuple[int, int]:
    """Rows of at most the widest width, as many as there are elements for."""
    columns = min(elements, WIDEST)
    return elements // columns, columns


def measure_share(share: Share) -> None:
    import torch

    with torch.no_grad():
        ready = compiled_cases(share, baselines=("eager",))
        share.wait("compiled")
        with share.alone():
            for case in ready:
                for line in share.tried(case.about, lambda case=case: case.with_inputs(lambda: measured(case))):
                    append_line(share.results, share.common | line)
                    print({name: line[name] for name in ("case", "ok", "gbps")}, flush=True)


def measured(case: PreparedCase) -> dict[str, Any]:
    """Bytes per second of each arm: medians of samples taken in turns."""
    from cutesmith_evaluator.worker.checks import run_checks
    from cutesmith_evaluator.worker.inputs_plan import Plan
    from cutesmith_evaluator.worker.timing_arms import call_of

    subject = case.subjects[0]
    outcome = run_checks(case.reference, subject.candidate, case.device, Plan(quick=True), lambda _: None)
    size = subject.least_bytes()
    moved = {"candidate": size, "eager": size, "copy": 2 * (size // 2), "read": FLOAT * (size // FLOAT)}
    calls = {"candidate": call_of(subject, "candidate", None), **case.calls, **yardsticks(size, case.device)}
    samples = case.sampled(calls, ARM_S * len(calls)).samples
    ms = {arm: statistics.median(times) for arm, times in samples.items()}
    return {
        "case": case.about["case"],
        "operator": case.about["qualname"],
        "command": "python benchmarks/bandwidth.py",
        "bytes": size,
        "ok": outcome.ok,
        "precision": outcome.precision,
        "findings": [finding.message for finding in outcome.findings if finding.severity == "error"],
        "schedule": case.about["schedules"][0],
        "ms": ms,
        "gbps": {arm: round(moved[arm] / value / 1e6, 3) for arm, value in ms.items()},
    }


def yardsticks(size: int, device: Any) -> dict[str, Callable[[], object]]:
    """PyTorch's copy and its sum, of as many bytes."""
    import torch

    source = torch.randint(256, (size // 2,), dtype=torch.uint8, device=device)  # zeros move faster than data do
    target = torch.empty_like(source)
    floats = torch.randn(size // FLOAT, device=device)
    return {"copy": lambda: torch.Tensor.copy_(target, source), "read": floats.sum}


def by_operator(lines: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Each operator's lines, the latest of each size, smallest first."""
    latest = {line["case"]: line for line in lines if "failed" not in line}
    ordered = sorted(latest.values(), key=lambda line: line["bytes"])
    return {name: [line for line in ordered if line["operator"] == name] for name in OPERATORS}


if __name__ == "__main__":
    main()
