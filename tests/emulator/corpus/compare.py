"""Runs the whole corpus on the emulated device and prints, by family, how far it agrees with the recorded GPU.

`make corpus`, about two minutes. Ends with status 1 where a kernel differs by more than its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(_ROOT / folder) for folder in ("tests/helpers", "benchmarks")]

from corpus import cute_cases, kernels  # noqa: E402
from corpus.agreement import Outcome, outcome  # noqa: E402
from corpus.emulated import run  # noqa: E402
from corpus.emulated_cute import run_cute  # noqa: E402
from corpus.store import Recording, load  # noqa: E402

_COLUMNS = ("kernels", "bit for bit", "in bounds", "differ", "not emulated", "not recorded")


def main() -> int:
    recording = load(Path(__file__).parent / "recorded")
    print(", ".join(f"{key} {value}" for key, value in recording.origin.items()))
    print(f"| family | {' | '.join(_COLUMNS)} |")
    print("|---" * (1 + len(_COLUMNS)) + "|")
    every: list[Outcome] = []
    for name, outcomes in _families(recording):
        print(_row(name, outcomes), flush=True)
        every += outcomes
    print(_row("all", every))
    for each in every:
        if each.unequal and not each.problem:
            words = f"{each.unequal} elements, at most {each.absolute:.3g} or, relatively, {each.relative:.3g}"
            print(f"in bounds: {each.name}: {words}")
    print(*(f"not emulated: {each.name}: {each.missing}" for each in every if each.missing), sep="\n")
    problems = [each.problem for each in every if each.problem]
    print(*problems, sep="\n")
    return 1 if problems else 0


def _families(recording: Recording) -> Iterator[tuple[str, list[Outcome]]]:
    for name in kernels.FAMILIES:
        yield name, [outcome(entry, recording, run) for entry in kernels.family(name)]
    for name in cute_cases.FAMILIES:
        cases = [case for case in cute_cases.cute_cases().values() if cute_cases.family_of(case) == name]
        yield f"CuTe: {name}", [outcome(case, recording, run_cute) for case in cases]


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    compared = [each for each in outcomes if each.recorded and not each.missing]
    differ = sum(bool(each.problem) for each in compared)
    inexact = sum(bool(each.unequal) and not each.problem for each in compared)
    missing = sum(bool(each.missing) for each in outcomes)
    unrecorded = sum(not each.recorded for each in outcomes)
    counts = (len(outcomes), len(compared) - differ - inexact, inexact, differ, missing, unrecorded)
    return f"| {name} | {' | '.join(map(str, counts))} |"


if __name__ == "__main__":
    sys.exit(main())
