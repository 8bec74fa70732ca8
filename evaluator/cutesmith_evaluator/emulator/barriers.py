"""Block-wide barriers: who may go on, and who waits for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import FaultError
from cutesmith_evaluator.emulator.program import Barrier
from cutesmith_evaluator.emulator.steps import Target

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
Parked = dict[tuple[int, int], Array]  # (block that goes on, block that ended in the barrier, or -1) → threads


def released(batch: Batch, parked: Parked) -> tuple[Parked, dict[int, Array]]:
    """What stays parked, and the threads that go on by block. Raises FaultError for who is not where it has to be."""
    free: dict[int, Array] = {}
    numbers = {key: _barrier_numbers(batch, key) for key in parked if key[1] >= 0}
    for number in sorted({int(value) for values in numbers.values() for value in np.unique(values)}):
        waiting = {key: parked[key] & (values == number) for key, values in numbers.items()}
        complete = _complete_blocks(batch, waiting, batch.arrivals.counts(number))
        if not complete.any():
            continue
        go = np.repeat(complete, batch.shape.padded)
        for key, mask in waiting.items():
            leaving = mask & go
            if leaving.any():
                free[key[0]] = free.get(key[0], np.zeros(batch.size, bool)) | leaving
                parked[key] = parked[key] & ~leaving
        _check_nobody_left(batch, waiting, complete)
        _check_warps_together(batch, {key: mask & go for key, mask in waiting.items() if _barrier(batch, key).aligned})
        _reduce(batch, {key: mask & go for key, mask in waiting.items()})
        if batch.order is None:
            batch.clock.pass_block_barrier(np.flatnonzero(complete))
        else:
            threads = np.flatnonzero(np.logical_or.reduce(list(waiting.values())) & go)
            batch.arrivals.pass_on(batch.order, number, np.flatnonzero(complete), threads)
            batch.order.pass_barrier(threads)
        batch.events += 1
    return {key: mask for key, mask in parked.items() if mask.any()}, free


def _barrier(batch: Batch, key: tuple[int, int]) -> Barrier:
    end = batch.program.blocks[key[1]].end
    assert isinstance(end, Barrier)
    return end


def _barrier_numbers(batch: Batch, key: tuple[int, int]) -> Array:
    return batch.spread(batch.values[_barrier(batch, key).number].view(np.uint32))


def _complete_blocks(batch: Batch, waiting: Parked, arrivals: Array) -> Array:
    """Whether as many threads as the barrier wants have come, for each block of the batch.

    `arrivals`: threads of each block that have come and do not wait.
    """
    shape = (batch.shape.count, batch.shape.padded)
    here = np.logical_or.reduce(list(waiting.values())).reshape(shape)
    wanted = np.count_nonzero(batch.alive.reshape(shape), axis=1)
    for key, mask in waiting.items():
        count = _barrier(batch, key).count
        if count is not None:
            of_barrier = np.where(mask, batch.spread(batch.values[count].view(np.uint32)), 0).reshape(shape)
            wanted = np.where(of_barrier.max(axis=1) > 0, of_barrier.max(axis=1), wanted)
    arrived = np.count_nonzero(here, axis=1)
    return (arrived > 0) & (arrived + arrivals == wanted)


def _check_nobody_left(batch: Batch, waiting: Parked, complete: Array) -> None:
    """A barrier without a count is for all threads of the block: one that has ended cannot come."""
    shape = (batch.shape.count, batch.shape.padded)
    short = complete & (np.count_nonzero(batch.alive.reshape(shape), axis=1) < batch.shape.threads)
    for key, mask in waiting.items():
        late = np.flatnonzero(mask & np.repeat(short, batch.shape.padded))
        if late.size and _barrier(batch, key).count is None:
            words = "waits at a barrier that some threads of its block never come to, for they have ended"
            raise FaultError(
                "barrier-divergence", words, place=_barrier(batch, key).place, culprit=batch.culprit(int(late[0]))
            )


def _check_warps_together(batch: Batch, leaving: Parked) -> None:
    """bar.sync is aligned: all threads of a warp have to be at the same one."""
    first: dict[int, tuple[int, int]] = {}  # warp → where the first of its threads waits
    for key in sorted(leaving, key=lambda each: each[1]):
        for warp in np.flatnonzero(leaving[key].reshape(-1, 32).any(axis=1)) if len(leaving) > 1 else ():
            if warp not in first:
                first[int(warp)] = key
                continue
            earlier = first[int(warp)]
            thread = int(warp) * 32 + int(np.flatnonzero(leaving[earlier][warp * 32 : warp * 32 + 32])[0])
            words = (
                "waits at another barrier than the rest of its warp; every thread of a warp has to come to the same one"
            )
            place = _barrier(batch, earlier).place
            raise FaultError("barrier-divergence", words, place=place, culprit=batch.culprit(thread))


def _reduce(batch: Batch, leaving: Parked) -> None:
    """bar.red: each thread of a block learns what the predicates of all were."""
    reducing = [key for key in leaving if _barrier(batch, key).reduction is not None]
    if not reducing:
        return
    shape = (batch.shape.count, batch.shape.padded)
    given, taking = np.zeros(batch.size, bool), np.zeros(batch.size, bool)
    for key in reducing:
        form = _barrier(batch, key).reduction
        assert form is not None
        given |= leaving[key] & (batch.spread(batch.values[form.predicate]) ^ form.negated)
        taking |= leaving[key]
    ones, all_of = np.count_nonzero(given.reshape(shape), axis=1), np.count_nonzero(taking.reshape(shape), axis=1)
    results = {"popc": ones.astype(np.uint32), "and": ones == all_of, "or": ones > 0}
    for key in reducing:
        form = _barrier(batch, key).reduction
        assert form is not None
        batch.mask = leaving[key]
        batch.put(Target(form.slot, form.dtype, True), np.repeat(results[form.name], batch.shape.padded))


def deadlock(batch: Batch, parked: Parked) -> FaultError:
    """Some wait, and nobody is left who could come."""
    key, mask = next(iter(parked.items()))
    thread = int(np.flatnonzero(mask)[0])
    block = thread // batch.shape.padded
    rows = slice(block * batch.shape.padded, (block + 1) * batch.shape.padded)
    here, alive = int(np.count_nonzero(mask[rows])), int(np.count_nonzero(batch.alive[rows]))
    if key[1] < 0:
        words = "waits for lanes of its warp that never come to this warp-wide instruction"
        return FaultError(
            "warp-divergence", words, place=batch.program.blocks[key[0]].place, culprit=batch.culprit(thread)
        )
    words = f"waits at a barrier to which {here} of the block's {alive} threads come: the kernel would hang"
    return FaultError("deadlock", words, place=_barrier(batch, key).place, culprit=batch.culprit(thread))
