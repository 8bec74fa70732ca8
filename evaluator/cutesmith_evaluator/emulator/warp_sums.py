"""match and redux: what the named lanes of a warp have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import DTYPES, U32, Words, unsupported
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.steps import Target, typed
from cutesmith_evaluator.emulator.whole_warps import WARP

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.lowering import Lowering

Array = np.ndarray[Any, np.dtype[Any]]
Found = Callable[[Array, Array], tuple[Array, Array | None]]  # (w, 32) values, (w, 32, 32) members → results

_LANES = np.arange(WARP, dtype=np.uint32)
_BITS = np.uint32(1) << _LANES
_REDUCTIONS: dict[str, tuple[np.ufunc, tuple[str, ...]]] = {
    "add": (np.add, ("u32", "s32")),
    "min": (np.minimum, ("u32", "s32")),
    "max": (np.maximum, ("u32", "s32")),
    "and": (np.bitwise_and, ("b32",)),
    "or": (np.bitwise_or, ("b32",)),
    "xor": (np.bitwise_xor, ("b32",)),
}


@dataclass
class AmongLanes:
    """`found` gives each lane its result, and a predicate where `predicate` wants one, from what its members have."""

    found: Found
    value: int
    dtype: np.dtype
    members: int
    result: Target | None
    predicate: Target | None
    place: Place | None
    family: str = "shuffle"

    def run(self, batch: Batch) -> None:
        running = batch.alive if batch.mask is None else batch.mask
        named = batch.spread(batch.values[self.members].view(U32)).reshape(-1, WARP, 1)
        members = ((named >> _LANES) & np.uint32(1)).astype(bool) & running.reshape(-1, 1, WARP)
        values = batch.spread(typed(batch.values[self.value], self.dtype)).reshape(-1, WARP)
        result, predicate = self.found(values, members)
        if self.result is not None:
            batch.put(self.result, np.ascontiguousarray(result).reshape(-1))
        if self.predicate is not None and predicate is not None:
            batch.put(self.predicate, np.ascontiguousarray(predicate).reshape(-1))


def _match_any(values: Array, members: Array) -> tuple[Array, Array | None]:
    return _mask((values[:, None, :] == values[:, :, None]) & members), None


def _match_all(values: Array, members: Array) -> tuple[Array, Array | None]:
    same = ((values[:, None, :] == values[:, :, None]) | ~members).all(axis=2)
    return np.where(same, _mask(members), np.uint32(0)), same


def _mask(lanes: Array) -> Array:
    return np.bitwise_or.reduce(np.where(lanes, _BITS, np.uint32(0)), axis=2)


def _reducing(function: np.ufunc, dtype: np.dtype) -> Found:
    identity = {np.minimum: np.iinfo(dtype).max, np.maximum: np.iinfo(dtype).min, np.bitwise_and: (1 << 32) - 1}
    neutral = np.asarray(identity.get(function, 0)).astype(dtype)

    def found(values: Array, members: Array) -> tuple[Array, Array | None]:
        chosen = np.where(members, values[:, None, :], neutral)
        return function.reduce(chosen, axis=2, dtype=dtype), None

    return found


def _made(lowering: Lowering, words: Words, found: Found, dtype: np.dtype) -> Step:
    instruction = words.instruction
    result, *sources = instruction.operands
    if len(sources) != 2:
        raise unsupported(instruction, f"with {len(sources)} operands")
    targets = [*lowering.targets(result, instruction), None]
    value, members = (
        lowering.slots.source(each, kind, instruction) for each, kind in zip(sources, (dtype, U32), strict=True)
    )
    return AmongLanes(found, value, dtype, members, targets[0], targets[1], instruction.place)


def _match(lowering: Lowering, words: Words) -> Step:
    how = words.one_of(("any", "all"))
    words.one_of(("sync",))
    dtype = DTYPES[words.kind(("b32", "b64"))]
    words.done()
    return _made(lowering, words, _match_any if how == "any" else _match_all, dtype)


def _redux(lowering: Lowering, words: Words) -> Step:
    function, kinds = _REDUCTIONS[words.one_of(tuple(_REDUCTIONS))]
    dtype = DTYPES[words.kind(kinds)]
    words.done()
    return _made(lowering, words, _reducing(function, dtype), dtype)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    "match": _match,
    "redux.sync": _redux,
}
