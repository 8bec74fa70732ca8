"""Block-wide barriers: who may go on, and who waits for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.faults import Fault
from cutesmith_evaluator.emulator.program import Barrier

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
Parked = dict[tuple[int, int], Array]  # (block that goes on, block that ended in the barrier, or -1) → threads


def released(batch: Batch, parked: Parked) -> tuple[Parked, dict[int, Array]]:
    """What stays parked, and the threads that go on by block. Raises Fault when nobody can."""
    free: dict[int, Array] = {}
    numbers = {key: _barrier_numbers(batch, key) for key in parked if key[1] >= 0}
    for number in sorted({int(value) for values in numbers.values() for value in np.unique(values)}):
        waiting = {key: parked[key] & (values == number) for key, values in numbers.items()}
        complete = _complete_blocks(batch, waiting)
        if not complete.any():
            continue
        go = np.repeat(complete, batch.shape.padded)
        for key, mask in waiting.items():
            leaving = mask & go
            if leaving.any():
                free[key[0]] = free.get(key[0], np.zeros(batch.size, bool)) | leaving
                parked[key] = parked[key] & ~leaving
        _check_warps_together(batch, {key: mask & go for key, mask in waiting.items()})
        batch.clock.pass_block_barrier(np.flatnonzero(complete))
    if not free:
        raise _deadlock(batch, parked)
    return {key: mask for key, mask in parked.items() if mask.any()}, free


def _barrier(batch: Batch, key: tuple[int, int]) -> Barrier:
    end = batch.program.blocks[key[1]].end
    assert isinstance(end, Barrier)
    return end


def _barrier_numbers(batch: Batch, key: tuple[int, int]) -> Array:
    return batch.spread(batch.values[_barrier(batch, key).number].view(np.uint32))


def _complete_blocks(batch: Batch, waiting: Parked) -> Array:
    """Whether as many threads as the barrier wants have come, for each block of the batch."""
    shape = (batch.shape.count, batch.shape.padded)
    here = np.logical_or.reduce(list(waiting.values())).reshape(shape)
    wanted = np.count_nonzero(batch.alive.reshape(shape), axis=1)
    for key, mask in waiting.items():
        count = _barrier(batch, key).count
        if count is not None:
            of_barrier = np.where(mask, batch.spread(batch.values[count].view(np.uint32)), 0).reshape(shape)
            wanted = np.where(of_barrier.max(axis=1) > 0, of_barrier.max(axis=1), wanted)
    arrived = np.count_nonzero(here, axis=1)
    return (arrived > 0) & (arrived == wanted)


def _check_warps_together(batch: Batch, leaving: Parked) -> None:
    """bar.sync is aligned: all threads of a warp have to be at the same one."""
    taken = np.full(batch.size // 32, -1)
    for key, mask in leaving.items():
        warps = mask.reshape(-1, 32).any(axis=1)
        mixed = warps & (taken >= 0)
        if mixed.any():
            warp = int(np.flatnonzero(mixed)[0])
            thread = int(np.flatnonzero(mask[warp * 32 : warp * 32 + 32])[0]) + warp * 32
            words = "waits at another barrier than its warp does; every thread of a warp has to come to the same one"
            raise Fault("barrier-divergence", words, place=_barrier(batch, key).place, culprit=batch.culprit(thread))
        taken = np.where(warps, key[1], taken)


def _deadlock(batch: Batch, parked: Parked) -> Fault:
    """Some wait, and nobody is left who could come."""
    key, mask = next(iter(parked.items()))
    thread = int(np.flatnonzero(mask)[0])
    block = thread // batch.shape.padded
    rows = slice(block * batch.shape.padded, (block + 1) * batch.shape.padded)
    here, alive = int(np.count_nonzero(mask[rows])), int(np.count_nonzero(batch.alive[rows]))
    if key[1] < 0:
        words = "waits for lanes of its warp that never come to this warp-wide instruction"
        return Fault("warp-divergence", words, place=batch.program.blocks[key[0]].place, culprit=batch.culprit(thread))
    words = f"waits at a barrier to which {here} of the block's {alive} threads come: the kernel would hang"
    return Fault("deadlock", words, place=_barrier(batch, key).place, culprit=batch.culprit(thread))
