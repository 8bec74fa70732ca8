"""Steps that compute, or move values between registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.program import Step

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch


@dataclass(frozen=True)
class Target:
    """A register to be written. `merge`: threads outside the mask may still want its old value."""

    slot: int
    dtype: np.dtype  # in which it is kept
    merge: bool


def typed(value: Any, dtype: np.dtype) -> Any:
    """A register's value as `dtype`; a wider register is cut."""
    if value.dtype is dtype:
        return value
    if value.dtype.itemsize == dtype.itemsize:
        return value.view(dtype)
    return value.view(f"u{value.dtype.itemsize}").astype(f"u{dtype.itemsize}").view(dtype)


def widened(value: Any, dtype: np.dtype) -> Any:
    """A result for a register that is wider than it: by its sign where it has one."""
    if value.dtype.itemsize == dtype.itemsize:
        return value
    kind = "i" if value.dtype.kind == "i" else "u"
    return value.view(f"{kind}{value.dtype.itemsize}").astype(f"{kind}{dtype.itemsize}")


@dataclass
class Compute:
    """`function` of the sources, each taken as its dtype, to the targets."""

    function: Callable[..., Any]
    sources: Sequence[tuple[int, np.dtype]]
    targets: Sequence[Target | None]
    place: Place | None
    family: str

    def run(self, batch: Batch) -> None:
        values = batch.values
        result = self.function(*[typed(values[slot], dtype) for slot, dtype in self.sources])
        if len(self.targets) == 1:
            result = (result,)
        for target, value in zip(self.targets, result, strict=True):
            if target is not None:
                batch.put(target, widened(value, target.dtype))


@dataclass
class Guarded:
    """A step for the threads whose predicate holds."""

    step: Step
    slot: int
    negated: bool

    @property
    def place(self) -> Place | None:
        return self.step.place

    @property
    def family(self) -> str:
        return self.step.family

    def run(self, batch: Batch) -> None:
        if batch.memory.stores is not None:
            batch.note_guarded_off(self)
        outer = batch.mask
        batch.mask = batch.where(self.slot, self.negated)
        try:
            if batch.mask is None or batch.mask.any():
                self.step.run(batch)
        finally:
            batch.mask = outer
