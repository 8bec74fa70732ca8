"""From values to places on a chart, and the values that an axis names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` onto places from `start` to `end`; logarithmic ones are above zero."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, here = (self._measure(each) for each in (self.low, self.high, value))
        share = (here - low) / (high - low) if high > low else 0.5
        return self.start + min(max(share, -0.02), 1.02) * (self.end - self.start)

    def _measure(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.is_log else value

    def ticks(self, about: int = 5) -> list[float]:
        return _decades(self.low, self.high) if self.is_log else _steps(self.low, self.high, about)


def logarithmic(values: Iterable[float], start: float, end: float) -> Scale:
    """Over whole decades around the values, of which those above zero count."""
    known = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = math.floor(math.log10(min(known) * 0.999)), math.ceil(math.log10(max(known) * 1.001))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), start, end, is_log=True)


def linear(values: Iterable[float], start: float, end: float) -> Scale:
    """From zero to a round number above the values."""
    top = max((value for value in values if math.isfinite(value)), default=0.0) or 1.0
    step = _step(top / 4)
    return Scale(0.0, math.ceil(top / step - 1e-9) * step, start, end)


def _decades(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    every = max(1, math.ceil((last - first) / 6))
    return [10.0**power for power in range(first, last + 1, every)]


def _steps(low: float, high: float, about: int) -> list[float]:
    step = _step((high - low) / about) if high > low else 1.0
    count = math.floor((high - low) / step + 1e-9)
    return [low + step * each for each in range(count + 1)]


def _step(raw: float) -> float:
    """The round number at or above: 1, 2 or 5 of a decade."""
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def short(value: float) -> str:
    """A number for an axis: "0.001", "20", "1e+06"."""
    return f"{value:g}"
