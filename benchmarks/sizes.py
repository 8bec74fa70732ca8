"""Each family of kernels over its shapes in three dtypes (size_cases.py): which drafts are right.

`sizes.py LINES` goes through all of them, a first draft of every case before other drafts, families in turn, on the
CUDA device or, `--device emulated`, on the emulated one; a line of LINES for each, so that a run cut short, or one with
`--seconds`, goes on where it was. `--family NAME` (repeatable): only these. It ends with what LINES come to by family,
and with status 1 where a draft was not right. `--keep` puts that into results/sizes.json and docs/recipes.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from cutesmith_agent.recipes import Draft, Target, propose
from cutesmith_evaluator.client import Worker, WorkerError
from cutesmith_evaluator.types import Inspection, Task
from pages import put
from records import RESULTS, append_line, read_lines
from size_cases import FAMILIES, SizeCase, size_cases
from suite import ROOT

WITHOUT_DEVICE = "sm_90a"  # the arch that is emulated
NOTHING_TO_GAIN = ("single element", "single elements", "same everywhere", "no elements")
NO_KERNEL = "nothing to gain"
PAGE = ROOT / "docs" / "recipes.md"
SUMMARY = RESULTS / "sizes.json"
Which = Literal["first", "other"]


@dataclass(frozen=True)
class Unit:
    """A case's first draft, or the one that the shape's place in its family's list chooses."""

    case: SizeCase
    which: Which

    @property
    def name(self) -> str:
        return f"{self.case.name}, {self.which}"


def main() -> int:
    options = parse_options()
    units = [unit for unit in all_units() if not options.family or unit.case.family.name in options.family]
    done = {line["unit"] for line in read_lines(options.lines)}
    waiting = [unit for unit in units if unit.name not in done]
    end = time.monotonic() + options.seconds
    shares = [waiting[number :: options.processes] for number in range(options.processes)]
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=run, args=(each, options.lines, options.device, end)) for each in shares if each]
    for process in running:
        process.start()
    for process in running:
        process.join()
    families = [by_family(name, units, read_lines(options.lines)) for name in names_of(units)]
    for each in families:
        print(*(f"{name} {value}" for name, value in each.items()), sep=", ", flush=True)
    if options.keep:
        keep(families, read_lines(options.lines))
    return int(any(each["not_right"] for each in families))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--family", action="append", default=[], choices=[family.name for family in FAMILIES])
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def all_units() -> list[Unit]:
    """In an order that has something of every family wherever it is cut; the same in every run."""
    cases = list(size_cases())
    random.Random(0).shuffle(cases)
    return [Unit(case, "first") for case in cases] + [Unit(case, "other") for case in cases]


def run(units: Sequence[Unit], lines: Path, device: str, end: float) -> None:
    parent = multiprocessing.parent_process()
    with Worker(Path(sys.executable)) as worker:
        for unit in units:
            if time.monotonic() >= end or not (parent and parent.is_alive()):
                return
            with tempfile.TemporaryDirectory(prefix="cutesmith-sizes-") as work:
                append_line(
                    lines,
                    {"unit": unit.name, "family": unit.case.family.name} | tried(unit, worker, device, Path(work)),
                )


def tried(unit: Unit, worker: Worker, device: str, folder: Path) -> dict[str, Any]:
    """The verdict, or the failure of a worker."""
    begun = time.monotonic()
    try:
        found = verdict(unit, worker, device, folder)
    except WorkerError as error:
        found = {"outcome": "failed", "why": str(error)}
    return found | {"seconds": round(time.monotonic() - begun, 2)}


def verdict(unit: Unit, worker: Worker, device: str, folder: Path) -> dict[str, Any]:
    """`outcome`: "right" (and as precise), NO_KERNEL, "same" as the first draft, else what is wrong, and `why`."""
    file = folder / "sized.py"
    file.write_text(unit.case.source)
    task = Task(str(file), "Sized")
    inspection = worker.inspect(task)
    proposal = propose(inspection, Target("Sized", file, inspection.environment.arch or WITHOUT_DEVICE))
    if not proposal.drafts:
        why = proposal.findings[0].message
        return {"outcome": NO_KERNEL if any(words in why for words in NOTHING_TO_GAIN) else "no kernel", "why": why}
    number = unit.case.family.shapes.index(unit.case.shape) % len(proposal.drafts) if unit.which == "other" else 0
    if unit.which == "other" and number == 0:
        return {"outcome": "same"}
    return judged(proposal.drafts[number], task, inspection, worker, device)


def judged(draft: Draft, task: Task, inspection: Inspection, worker: Worker, device: str) -> dict[str, Any]:
    candidate = Path(task.file).parent / "draft" / "sized_cute.py"
    candidate.parent.mkdir()
    candidate.write_text(draft.source)
    dims = inspection.graph.dynamic_dims if inspection.graph else ()
    found = worker.validate(task, candidate, device=device, dynamic_dims=dims, quick=True)
    about = {"device": found.device, "schedule": draft.schedule}
    if found.ok and found.precision == "kept":
        return about | {"outcome": "right"}
    outcome = f"precision {found.precision}" if found.ok else "wrong" if found.ok is False else "not validated"
    return about | {"outcome": outcome, "why": " ".join(each.message for each in found.findings)}


def names_of(units: Sequence[Unit]) -> list[str]:
    """Of the units' families, in the order of FAMILIES."""
    names = {unit.case.family.name for unit in units}
    return [family.name for family in FAMILIES if family.name in names]


def keep(families: Sequence[dict[str, Any]], lines: Sequence[dict[str, Any]]) -> None:
    """In place of what was kept of that device."""
    device = next(line["device"] for line in lines if "device" in line)
    result = {"device": device, "date": f"{datetime.now(UTC):%Y-%m-%d}", "families": families}
    others = [each for each in kept() if each["device"] != device]
    SUMMARY.write_text(json.dumps([*others, result], indent=1) + "\n")
    put_table()


def put_table() -> None:
    put(PAGE, sizes=table(kept()))


def kept() -> list[dict[str, Any]]:
    return json.loads(SUMMARY.read_text()) if SUMMARY.exists() else []


def table(results: Sequence[dict[str, Any]]) -> str:
    """A row for each family; for each device its cases with a verdict, and drafts that were right."""
    if not results:
        return "not measured yet"
    heads = [f"{each['device']}, {each['date']}" for each in results]
    rows = [f"| family | computes | shapes | {' | '.join(heads)} |", f"| --- | --- | ---: |{' --- |' * len(heads)}"]
    for family in FAMILIES:
        cells = (cell(family.name, each["families"]) for each in results)
        shapes = len(dict.fromkeys(family.shapes))
        rows.append(f"| {family.name} | `{family.computes}` | {shapes} | {' | '.join(cells)} |")
    return "\n".join(rows)


def cell(name: str, families: Sequence[dict[str, Any]]) -> str:
    found = next((each for each in families if each["family"] == name), None)
    if found is None:
        return "–"
    right = found["drafts"] - len(found["not_right"])
    return f"{found['validated']} of {found['cases']} cases, {right} of {found['drafts']} drafts right"


def by_family(name: str, units: Sequence[Unit], known: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts of shapes and cases (a shape in a dtype) that there are, of cases with a verdict, and of drafts."""
    cases = {unit.case for unit in units if unit.case.family.name == name}
    mine = [line for line in known if line["family"] == name]
    tried = [line for line in mine if line["outcome"] not in (NO_KERNEL, "same")]
    return {
        "family": name,
        "shapes": len({case.shape for case in cases}),
        "cases": len(cases),
        "validated": sum(line["unit"].endswith(", first") for line in mine),
        "drafts": len(tried),
        "not_right": [line["unit"] for line in tried if line["outcome"] != "right"],
    }


if __name__ == "__main__":
    sys.exit(main())
