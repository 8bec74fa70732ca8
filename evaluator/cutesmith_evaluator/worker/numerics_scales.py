"""Errors of small values beside large ones: figures over a whole output hide them.

The values are grouped by their size. An error counts where it is a large share of the values of its group, and far
beyond what eager errs by among values of that size or the next: sums that cancel are as far off in eager.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

_OCTAVES = 4  # of a group
_LEAST = -96  # exponent below which values are not looked at: products of such values underflow
_SHARE = 0.02  # of the largest values of a group: no digit but the first is right
_FAR = 32.0  # times eager's error
_SAMPLED = 1 << 23  # elements of a slice; of a longer one every n-th is looked at, n odd: columns are powers of two


@dataclass(frozen=True)
class SmallValues:
    """The group whose values are furthest off. `share`, `eager_share`: largest errors, of the largest value."""

    size: float
    share: float
    eager_share: float

    @property
    def usage(self) -> float:
        return self.share / max(_SHARE, _FAR * self.eager_share)

    def __str__(self) -> str:
        return f"values of about {self.size:.1g} are off by up to {self.share:.1%} (eager's by {self.eager_share:.2g})"


@dataclass
class ScaleErrors:
    """The largest errors of candidate and eager in each group, fed slice by slice."""

    groups: dict[int, tuple[float, float]] = field(default_factory=dict)

    def add(self, candidate: Tensor, eager: list[Tensor], reference: Tensor, where: Tensor) -> None:
        """Tensors of one dimension and length. `eager`: as it runs with and without TF32. `where`: which count."""
        step = -(-reference.numel() // _SAMPLED) | 1
        candidate, reference, where = candidate[::step], reference[::step].double(), where[::step]
        exponents = torch.frexp(reference).exponent
        counted = where & (exponents > _LEAST) & (reference != 0)
        if not bool(counted.any()):
            return
        group = torch.where(counted, (exponents - _LEAST) // _OCTAVES, -1)
        mine = _difference(candidate, reference)
        theirs = torch.stack([_difference(each[::step], reference) for each in eager]).amax(0)
        for number, *errors in self._maxima(group, mine, theirs):
            known = self.groups.get(number, (0.0, 0.0))
            self.groups[number] = (max(known[0], errors[0]), max(known[1], errors[1]))

    @staticmethod
    def _maxima(group: Tensor, mine: Tensor, theirs: Tensor) -> list[tuple[int, float, float]]:
        low, high = torch.stack((torch.where(group < 0, group.max(), group).min(), group.max())).tolist()
        numbers = range(low, high + 1)
        zero = torch.zeros((), dtype=mine.dtype, device=mine.device)
        found = [torch.where(group == each, errors, zero).max() for each in numbers for errors in (mine, theirs)]
        values = torch.stack(found).tolist()
        return list(zip(numbers, values[::2], values[1::2], strict=True))

    def worst(self) -> SmallValues | None:
        """The group that is furthest off; None where none is."""
        far = [each for each in map(self._group, self.groups) if each.usage > 1]
        return max(far, key=lambda each: each.usage, default=None)

    def _group(self, number: int) -> SmallValues:
        largest = 2.0 ** (_LEAST + _OCTAVES * (number + 1) - 1)
        candidate, eager = self.groups[number]
        beside = self.groups.get(number + 1, (0.0, 0.0))[1]
        return SmallValues(largest, candidate / largest, max(eager, beside) / largest)


def _difference(values: Tensor, reference: Tensor) -> Tensor:
    return (values.double() - reference).abs_().nan_to_num_(nan=math.inf)
