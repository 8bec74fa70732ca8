"""The memory of emulated tensors, as the device knows it: storages, from their first tensor to their last."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

from cutesmith_evaluator.emulator.faults import DependentError
from cutesmith_evaluator.emulator.memory import Allocation, GlobalMemory

_EXPORTED = 64


@dataclass
class _Held:
    allocation: Allocation
    tensors: int


class Allocations:
    """Keeps `memory` in step with the tensors that are alive."""

    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        self._held: dict[int, _Held] = {}
        # Who takes a tensor over DLPack may outlive it, and nothing tells when it is done: the last ones stay.
        self.exported: deque[object] = deque(maxlen=_EXPORTED)

    def hold(self, owner: object, host: Tensor, *, initialised: bool) -> None:
        """The storage of `host` is allocated for as long as `owner` lives."""
        storage = host.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if not size:
            return
        held = self._held.get(start)
        if held is None:
            label = f"a tensor of {host.dtype} and shape {tuple(host.shape)}".replace("torch.", "")
            held = self._held[start] = _Held(Allocation(start, size, label, initialised=initialised), 0)
            self._memory.add(held.allocation)
        held.tensors += 1
        weakref.finalize(owner, self._let_go, start)

    def mark_initialised(self, host: Tensor) -> None:
        held = self._held.get(host.untyped_storage().data_ptr())
        if held is not None:
            held.allocation.mark_initialised()
            if self._memory.stores is not None:
                self._memory.stores.forget(held.allocation)

    def unwritten(self, host: Tensor) -> int:
        """Bytes of the tensor's storage that nothing has written."""
        held = self._held.get(host.untyped_storage().data_ptr())
        return held.allocation.unwritten() if held is not None else 0

    def require_whole(self, host: Tensor) -> None:
        """Raises DependentError where blocks were left out that would have stored to the tensor's storage."""
        held = self._held.get(host.untyped_storage().data_ptr())
        if held is not None and held.allocation.writer is not None and held.allocation.is_partial:
            raise DependentError(held.allocation.writer.kernel)

    def judged(self, host: Tensor) -> Tensor | None:
        """Which elements blocks that ran have stored; None where all blocks ran. Raises DependentError for none.

        The others are set to zero.
        """
        held = self._held.get(host.untyped_storage().data_ptr())
        if held is None or held.allocation.writer is None or not held.allocation.is_partial:
            return None
        flags = held.allocation.holds_value()
        assert flags is not None
        whole = torch.from_numpy(flags.reshape(-1, host.element_size()).all(axis=1))
        known = whole.as_strided(host.shape, host.stride(), host.storage_offset()).contiguous()
        if not known.any():
            raise DependentError(held.allocation.writer.kernel)
        host.masked_fill_(~known, 0)
        return known

    def _let_go(self, start: int) -> None:
        held = self._held[start]
        held.tensors -= 1
        if not held.tensors:
            self._memory.remove(held.allocation)
            del self._held[start]
