"""Our kernels of rows beside those of quack-kernels, the best there are in CuTe DSL: one run, the same tensors.

`prepare FOLDER` writes our drafts, without a device; `measure FOLDER RESULTS` times the fastest right one of each case
in turns with quack's (installed with `pip install quack-kernels`), with a cold L2, and appends a line for each case.
Processes compile side by side and time one at a time, alone on the device.
`page` prints the table of results/quack.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from prepared import PROCESSES, Share, measure_in_processes, prepare, prepared_in
from prepared_case import SAMPLE_S, PreparedCase
from records import RESULTS, append_line, read_lines
from suite import ROOT, Case

_TASKS = ROOT / "benchmarks" / "tasks" / "peer_rows.py"
_KINDS = ("RowSoftmax", "RowRMSNorm", "RowLayerNorm", "RowCrossEntropy")
_SHAPES = ((32768, 1024), (8192, 4096), (8192, 11008), (2048, 65536))
_DTYPES = ("float32", "bfloat16")
DRAFTS = 10  # as many as a job measures


def cases() -> Iterator[Case]:
    for kind, (rows, columns), dtype in product(_KINDS, _SHAPES, _DTYPES):
        constants = {"ROWS": str(rows), "COLUMNS": str(columns), "DTYPE": f"torch.{dtype}"}
        yield Case(f"{kind} {rows}×{columns} {dtype}", _TASKS, kind, "reduction", constants)


def measure_share(folder: Path, results: Path, number: int) -> None:
    import torch

    share = Share(folder, results, number)
    done = {line["case"] for line in read_lines(results)}
    with torch.no_grad():
        for place in prepared_in(folder)[number::PROCESSES]:
            about = json.loads((place / "about.json").read_text())
            if about["case"] in done:
                continue
            for line in share.tried(
                about, lambda place=place: _timed(PreparedCase(place, baselines=("eager",)), share)
            ):
                append_line(results, share.common | line)
                print(line["case"], line["ms"], f"{line['against_quack']:.3f}", line["ok"], flush=True)


def _timed(case: PreparedCase, share: Share) -> dict[str, Any]:
    case.with_inputs(lambda: quack_call(case.about["qualname"], case.module, case.inputs)())  # compiled here
    with share.alone():
        return {"case": case.about["case"]} | measured(case)


def measured(case: PreparedCase) -> dict[str, Any]:
    """Medians in ms, how many times as fast as quack's ours is, and how far quack's result is from eager's."""
    case.with_inputs(case.choose)
    return case.with_inputs(lambda: _beside_quack(case))


def _beside_quack(case: PreparedCase) -> dict[str, Any]:
    from cutesmith_evaluator.worker.timing_arms import call_of

    subject = case.subjects[case.best]
    theirs = quack_call(case.about["qualname"], case.module, case.inputs)
    arms = {"ours": call_of(subject, "candidate", None), "quack": theirs, "eager": case.calls["eager"]}
    gap = (theirs().double() - arms["eager"]().double()).abs().max().item()
    samples = case.sampled(arms, SAMPLE_S).samples
    ms = {name: round(statistics.median(samples[name]), 5) for name in arms}
    ratios = [theirs_ms / ours_ms for ours_ms, theirs_ms in zip(samples["ours"], samples["quack"], strict=True)]
    return {
        "ok": case.outcome.ok,
        "precision": case.outcome.precision,
        "ms": ms,
        "against_quack": round(statistics.median(ratios), 4),
        "quack_gap": gap,
        "schedule": case.about["schedules"][case.best],
    }


def quack_call(kind: str, module: Any, inputs: Any) -> Callable[[], Any]:
    """Quack's forward of the same tensors."""
    from quack.cross_entropy import cross_entropy_fwd  # pyright: ignore[reportMissingImports] - only beside a GPU
    from quack.rmsnorm import layernorm_fwd, rmsnorm_fwd  # pyright: ignore[reportMissingImports]
    from quack.softmax import softmax_fwd  # pyright: ignore[reportMissingImports]

    x = inputs[0]
    if kind == "RowSoftmax":
        return lambda: softmax_fwd(x)
    if kind == "RowRMSNorm":
        return lambda: rmsnorm_fwd(x, module.weight, eps=module.eps)[0]
    if kind == "RowLayerNorm":
        return lambda: layernorm_fwd(x, module.weight, module.bias, module.eps)
    return lambda: cross_entropy_fwd(x, inputs[1])


def page() -> str:
    lines = ["| rows | ours, ms | quack, ms | eager, ms | ours against quack |", "|---|---|---|---|---|"]
    for each in read_lines(RESULTS / "quack.jsonl"):
        ms = each["ms"]
        figures = f"{ms['ours']:.4f} | {ms['quack']:.4f} | {ms['eager']:.4f} | {each['against_quack']:.3f}"
        lines.append(f"| {each['case']} | {figures} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("step", choices=("prepare", "measure", "share", "page"))
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("results", type=Path, nargs="?", default=RESULTS / "quack.jsonl")
    options.add_argument("--number", type=int, default=0)
    chosen = options.parse_args()
    if chosen.step == "page":
        print(page())
    elif chosen.step == "prepare":
        prepare(chosen.folder, chosen.results, list(cases()), DRAFTS)
    elif chosen.step == "measure":
        measure_in_processes(Path(__file__), chosen.folder.absolute(), chosen.results.absolute())
    else:
        measure_share(chosen.folder, chosen.results, chosen.number)


if __name__ == "__main__":
    main()
