"""What the emulated device leaves, held against what a GPU left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from corpus.checks import EXACT, Check, differences, floats
from corpus.store import Array, Recording
from cutesmith_evaluator.emulator.faults import EmulationError, UnsupportedError

_SHOWN = 3  # elements of a kernel that differs


class Case(Protocol):
    """An `Entry` or a `CuteCase`."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def checks(self) -> tuple[Check, ...]: ...


C = TypeVar("C", bound=Case)


@dataclass(frozen=True)
class Outcome:
    """`problem`: what is wrong, or "". `missing`: what is not emulated, or "". `recorded`: whether there is something
    to compare with. `unequal`: elements of other bits; `relative`, `absolute`: the largest differences of floats.
    """

    name: str
    problem: str = ""
    missing: str = ""
    recorded: bool = True
    unequal: int = 0
    relative: float = 0.0
    absolute: float = 0.0


def outcome(case: C, recording: Recording, run: Callable[[C], list[Array]]) -> Outcome:
    """Runs the case, which raises EmulationError alone. It is not run where the recording is not of it."""
    if recording.digests.get(case.name) != case.digest:
        return Outcome(case.name, recorded=False)
    try:
        emulated = run(case)
    except UnsupportedError as error:
        return Outcome(case.name, missing=error.message)
    except EmulationError as error:
        return Outcome(case.name, problem=f"{case.name}: {error.kind}: {error.message}")
    return compared(case, recording.results[case.name], emulated)


def compared(case: Case, recorded: Sequence[Array], emulated: Sequence[Array]) -> Outcome:
    """Two results of the case, by its own checks."""
    problems: list[str] = []
    unequal, relative, absolute = 0, 0.0, 0.0
    for place, (check, wanted, given) in enumerate(zip(case.checks, recorded, emulated, strict=False)):
        if (far := differences(check, wanted, given)).size:
            shown = _shown(far, wanted, given)
            problems.append(f"output {place}, {far.size} of {wanted.size} elements: {shown}")
        if check.kind == "close":
            unequal += differences(EXACT, wanted, given).size
            largest = _largest(floats(wanted, check.form), floats(given, check.form))
            absolute, relative = max(absolute, largest[0]), max(relative, largest[1])
    text = f"{case.name}: {'; '.join(problems)}" if problems else ""
    return Outcome(case.name, text, unequal=unequal, relative=relative, absolute=absolute)


def _shown(far: Array, wanted: Array, given: Array) -> str:
    digits, kind = 2 * wanted.itemsize, f"u{wanted.itemsize}"
    one, other = wanted.reshape(-1).view(kind), given.reshape(-1).view(kind)
    return ", ".join(f"[{at}] {one[at]:0{digits}x} emulated as {other[at]:0{digits}x}" for at in far[:_SHOWN].tolist())


def _largest(recorded: Array, emulated: Array) -> tuple[float, float]:
    """Absolute and relative, of what is finite; relative to recorded values other than zero."""
    both = np.isfinite(recorded) & np.isfinite(emulated)
    recorded, difference = recorded[both], np.abs(recorded[both] - emulated[both])
    nonzero = recorded != 0
    relative = difference[nonzero] / np.abs(recorded[nonzero])
    return float(difference.max(initial=0.0)), float(relative.max(initial=0.0))
