"""How well patches find their place, on edits drawn from real CuTe files, beside other ways to apply them.

Run: python benchmarks/patches.py [--per-category N] [--seed S]. The files are what the recipes write for the examples;
`patch_corpus` says how an edit drifts. Prints two tables in Markdown. No device is needed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from patch_arms import ARMS, Outcome, outcome
from patch_corpus import CATEGORIES, Case, corpus
from suite import EXAMPLE_MODULES, Example


def recipe_files(examples: Iterable[Example], worker: Worker) -> list[str]:
    """The first kernel file that the recipes write for each example."""
    files = []
    for example in examples:
        inspection = worker.inspect(Task(str(example.file), example.qualname))
        files.append(propose(inspection, Target(example.qualname, example.file, "sm_90a")).drafts[0].source)
    return files


def outcomes(cases: Sequence[Case]) -> dict[str, list[Outcome]]:
    """What each way makes of each case."""
    return {arm: [outcome(case, apply(case.source, case.patch)) for case in cases] for arm, apply in ARMS.items()}


def overall(cases: Sequence[Case], results: dict[str, list[Outcome]]) -> str:
    """Markdown: one row for each way."""
    placeable = sum(case.expected is not None for case in cases)
    lines = ["| way | right | wrongly applied | refused though placeable |", "|---|---|---|---|"]
    for arm, each in results.items():
        counts = Counter(each)
        refused = f"{counts['refused']} of {placeable} ({counts['refused'] / placeable:.1%})"
        lines.append(f"| {arm} | {counts['correct']} of {len(cases)} | {counts['wrong']} | {refused} |")
    return "\n".join(lines)


def by_category(cases: Sequence[Case], results: dict[str, list[Outcome]]) -> str:
    """Markdown: one row for each category, with right/wrong/refused of each way."""
    lines = [f"| edits | {' | '.join(results)} |", "|---|" + "---|" * len(results)]
    for name in CATEGORIES:
        mine = [number for number, case in enumerate(cases) if case.category == name]
        counts = [Counter(each[number] for number in mine) for each in results.values()]
        cells = [f"{count['correct']}/{count['wrong']}/{count['refused']}" for count in counts]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--per-category", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with Worker(Path(sys.executable)) as worker:
        sources = recipe_files(EXAMPLE_MODULES, worker)
    cases = corpus(sources, options.per_category, options.seed)
    results = outcomes(cases)
    print(overall(cases, results), by_category(cases, results), sep="\n\n")


if __name__ == "__main__":
    main()
