"""What two texts have in common at their ends: all but the place of an edit."""

from __future__ import annotations

from collections.abc import Callable


def common_ends(before: bytes, after: bytes) -> tuple[int, int]:
    """How many bytes are the same at the beginning, and how many of the others at the end."""
    shorter = min(len(before), len(after))
    start = _longest(shorter, lambda low, high: before[low:high] == after[low:high])
    a, b = len(before), len(after)
    end = _longest(shorter - start, lambda low, high: before[a - high : a - low] == after[b - high : b - low])
    return start, end


def _longest(most: int, is_same: Callable[[int, int], bool]) -> int:
    """The greatest length up to which all is the same, halving what is left to compare."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if is_same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low
