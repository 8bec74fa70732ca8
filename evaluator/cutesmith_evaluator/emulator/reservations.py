"""Places in shared memory that asynchronous copies still fill: who touches one is too early."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.memory import AccessFaultError

Array = np.ndarray[Any, np.dtype[Any]]


class Reservations:
    """`pieces`: of all blocks' shared memory; `base`: the address of a block's first byte."""

    def __init__(self, pieces: int, base: int) -> None:
        self._pieces, self._base = pieces, base
        self._owner: Array | None = None  # of each piece: the thread whose copy is under way, or -1

    def check(self, pieces: Array, addresses: Array, verb: str) -> None:
        """`pieces`: (accesses, pieces of each). Raises AccessFaultError for one that a copy still fills."""
        if self._owner is None:
            return
        taken = self._owner[pieces] >= 0
        if taken.any():
            access = int(np.flatnonzero(taken.any(axis=1))[0])
            words = (
                f"{verb} shared memory at offset {int(addresses[access]) - self._base}, which a cp.async still fills: "
                "the thread that started the copy has not waited for it"
            )
            raise AccessFaultError("race", words, access, int(addresses[access]))

    def take(self, pieces: Array, threads: Array) -> bool:
        """Whether each place is of one thread alone now."""
        if self._owner is None:
            self._owner = np.full(self._pieces, -1, np.int64)
        self._owner[pieces] = threads[:, None]
        return bool((self._owner[pieces] == threads[:, None]).all())

    def free(self, pieces: Array) -> None:
        if self._owner is not None:
            self._owner[pieces] = -1
