"""Who is to blame for a fault of one of many accesses that are not made by all threads that run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.memory import AccessFaultError


@contextmanager
def blamed(places: np.ndarray[Any, np.dtype[Any]]) -> Iterator[None]:
    """Inside, a fault of the n-th access is one of the thread at places[n] among those that run."""
    try:
        yield
    except AccessFaultError as error:
        error.thread = int(places[error.thread])
        raise
