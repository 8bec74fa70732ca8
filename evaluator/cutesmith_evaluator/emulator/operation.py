"""What an arithmetic instruction does to the values of all threads: a function, and the types of what it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Operation:
    """`function` gives one array, or a tuple of them, for the results.

    `relaxed`: registers wider than their types are cut, as `cvt` and `st` may have them.
    """

    function: Callable[..., Any]
    sources: tuple[np.dtype, ...]
    results: tuple[np.dtype, ...]
    relaxed: bool = False


def same(function: Callable[..., Any], dtype: np.dtype, count: int) -> Operation:
    """`count` values of one type to one of it."""
    return Operation(function, (dtype,) * count, (dtype,))
