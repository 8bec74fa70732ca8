"""Launches of which only some blocks run: which ones, and for which kernels that says anything.

A kernel qualifies when its blocks, or clusters of them, are independent of one another: it updates no global memory
atomically, orders no memory beyond the cluster, and (watched while it runs) stores to fresh memory alone and loads
nothing that it stores. What is left out is then missing from its results, and nothing else is wrong with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.ptx import Instruction, Kernel

Array = np.ndarray[Any, np.dtype[Any]]

PILOT = 3  # of them, that show what a block costs
_ORDERING = ("membar", "fence")  # of memory: beyond the cluster with one of these scopes
_SCOPES = {"gl", "gpu", "sys"}
_SHARED = {"shared", "shared::cta", "shared::cluster"}


@dataclass(frozen=True)
class Budget:
    """Of one launch, as `Counts.work` counts it. A launch of more than `whole` is run in part, to about `part`."""

    whole: float = 1.2e8
    part: float = 3e7


@dataclass(eq=False)
class PartialLaunch:
    """A launch that may leave blocks out. `complete`: it left out none after all."""

    kernel: str
    complete: bool = False


def has_independent_blocks(kernel: Kernel) -> bool:
    """Whether nothing in the kernel's text lets one block wait for another or add to what another adds to."""
    return not any(_reaches_others(instruction) for instruction in kernel.body)


def _reaches_others(instruction: Instruction) -> bool:
    first, *rest = instruction.words
    words = set(rest)
    if first == "multimem" or (first == "cp" and "reduce" in words):
        return True
    if first in ("atom", "red"):
        return not words & _SHARED
    if first in ("ld", "st") and words & {"acquire", "release", "relaxed", "volatile"}:
        return not words & _SHARED
    return first in _ORDERING and bool(words & _SCOPES)


def spread(total: int, count: int) -> Array:
    """`count` of `total` block numbers in order: the first, the last, and the others evenly between them."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(np.int64))


def chosen_blocks(total: int, ran: Array, work: int, budget: Budget) -> Array:
    """The blocks to run after `ran`, whose cost is known: all others, or a spread of them."""
    per_block = max(1.0, work / ran.size)
    affordable = total if per_block * total <= budget.whole else int(budget.part / per_block)
    wanted = np.arange(total) if affordable >= total else spread(total, max(affordable, ran.size))
    return np.setdiff1d(wanted, ran)
