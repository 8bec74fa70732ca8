"""Results that say little: the same value for all inputs, or for the task's own, fits many a wrong kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cutesmith_evaluator.worker.numerics import chunks

_ALIKE = 64  # steps of the dtype, relative to the value: a sum of probabilities is one up to rounding


@dataclass
class Range:
    """The finite values that an output had so far. `number`: how many."""

    low: float = math.inf
    high: float = -math.inf
    number: int = 0
    step: float = 0.0  # the dtype's
    noise: bool = True  # whether eager's errors were always larger than the values: these are rounding errors about 0

    def add(self, low: float, high: float, number: int, step: float, *, noise: bool) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.number += number
        self.step = step
        self.noise &= noise

    @property
    def constant(self) -> float | None:
        """The value that all of at least two had, up to rounding; None where they differ."""
        if self.number >= 2 and self.noise:
            return 0.0
        if self.number < 2 or self.high - self.low > _ALIKE * self.step * max(abs(self.low), abs(self.high)):
            return None
        return self.high


@dataclass
class Ranges:
    """Of each output, over the checks on the task's own inputs and over all."""

    own: list[Range] = field(default_factory=list)
    all: list[Range] = field(default_factory=list)

    def add(self, outputs: Sequence[Tensor], *, own: bool, noise: frozenset[int] = frozenset()) -> None:
        """What eager gave in one check. `noise`: the outputs that are smaller than their own errors."""
        for ranges in (self.own, self.all) if own else (self.all,):
            ranges += [Range() for _ in range(len(outputs) - len(ranges))]
        for place, output in enumerate(outputs):
            found = _range(output)
            for ranges in (self.own, self.all) if own else (self.all,):
                ranges[place].add(*found, noise=place in noise)

    def always(self) -> dict[int, float]:
        """Outputs that were the same value everywhere in all checks."""
        return _constants(self.all)

    def on_own_inputs(self) -> dict[int, float]:
        """Outputs that were so on the task's own inputs, and not elsewhere."""
        return {place: value for place, value in _constants(self.own).items() if place not in self.always()}


def _constants(ranges: list[Range]) -> dict[int, float]:
    return {place: value for place, each in enumerate(ranges) if (value := each.constant) is not None}


def _range(output: Tensor) -> tuple[float, float, int, float]:
    low, high, number = math.inf, -math.inf, 0
    for _, (piece,) in chunks(output):
        finite = piece[piece.isfinite()]
        if finite.numel():
            least, most = torch.aminmax(finite.to(torch.int8) if finite.dtype is torch.bool else finite)
            low, high, number = min(low, least.item()), max(high, most.item()), number + finite.numel()
    floating = output.is_floating_point() or output.is_complex()
    return low, high, number, torch.finfo(output.dtype).eps if floating else 0.0
