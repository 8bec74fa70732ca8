"""Which class the evaluator gives to fp32 tasks that are computed in other arithmetic.

Run: python benchmarks/precision_classes.py [--small] [--out FILE]. Prints a table: for each task and arithmetic the
class on normal, uniform and wide-range inputs, with the error in units of eager's own and the bound for *kept*. On an
H200 it takes less than a minute. Without a CUDA device tensor cores' sums are exact: splits look better than they are.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from precision_cases import QUALNAME, Study, convolution_study, pointwise_study, product_study, reduction_study

Record = dict[str, Any]
DISTRIBUTIONS = ("normal", "uniform [0, 1)", "wide range")
_OWN = "the task's inputs, seed 0"
_HEAD = f"| task | computed in | {' | '.join(DISTRIBUTIONS)} |\n| --- | --- | --- | --- | --- |"


def studies(*, small: bool) -> list[Study]:
    if small:
        return [product_study(64, 256), pointwise_study(64, 256), reduction_study(64, 256), convolution_study(2, 8, 12)]
    products = [product_study(512, depth) for depth in (256, 1024, 4096)]
    return [*products, pointwise_study(2048, 4096), reduction_study(2048, 4096), convolution_study(16, 64, 40)]


def outcome_of(study: Study, name: str, distribution: str, device: torch.device, folder: Path) -> Outcome:
    """The evaluator's own checks of one candidate, on inputs of one distribution."""
    task, candidate = folder / f"{folder.name}_task.py", folder / "task_cute.py"
    task.write_text(study.task(distribution))
    candidate.write_text(study.candidate(name, device.type))
    reference = load_reference(Task(str(task), QUALNAME))
    return run_checks(reference, load_candidate(candidate, reference), device, Plan(quick=True), lambda _: None)


def record(study: Study, name: str, distribution: str, device: torch.device) -> Record:
    """`usage`: of the bound for *kept*; `ratio`: of eager's error. Class "wrong": wrong values, as of an overflow."""
    with tempfile.TemporaryDirectory(prefix="precision_") as scratch:
        outcome = outcome_of(study, name, distribution, device, Path(scratch))
    measured = outcome.by_check.get(_OWN)
    known: Record = {"task": study.name, "candidate": name, "distribution": distribution}
    if measured is None:
        kinds = {finding.kind for finding in outcome.findings}
        return known | {"class": "wrong" if "wrong-values" in kinds else ", ".join(sorted(kinds))}
    figures = measured.figures(kernelbench_ok=True)
    fields: Record = {
        "class": measured.precision,
        "usage": measured.usage,
        "ratio": figures.ratio,
        "figure": figures.figure,
    }
    return known | fields | {"rms": measured.candidate.rms, "eager_rms": measured.eager.rms}


def records(study: Study, device: torch.device) -> Iterator[Record]:
    for name in study.candidates:
        for distribution in DISTRIBUTIONS:
            yield record(study, name, distribution, device)


def row(found: list[Record]) -> str:
    """One line of the table, of the records of one candidate."""
    cells = [str(found[0]["task"]), str(found[0]["candidate"])]
    for each in found:
        words = (
            f"{each['class']} ({each['ratio']:.2g}×, {each['usage']:.2g})" if "usage" in each else str(each["class"])
        )
        cells.append(words)
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="sizes for a machine without a device")
    parser.add_argument("--out", type=Path, help="a file for the records, as JSON lines")
    options = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    begin, found = time.monotonic(), list[Record]()
    print(_HEAD)
    for study in studies(small=options.small):
        mine = list(records(study, device))
        found += mine
        for start in range(0, len(mine), len(DISTRIBUTIONS)):
            print(row(mine[start : start + len(DISTRIBUTIONS)]), flush=True)
    print(
        f"\n{torch.cuda.get_device_name(device) if device.type == 'cuda' else 'CPU'}, {time.monotonic() - begin:.0f} s"
    )
    if options.out:
        options.out.write_text("".join(json.dumps(each) + "\n" for each in found))


if __name__ == "__main__":
    main()
