"""Calls as one CUDA graph: the host launches it once, so that a clock far away can tell calls of a few microseconds.

A digest of what each call gives is made in the graph, right after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from cutesmith_evaluator.confirmation import PART
from cutesmith_evaluator.worker.confirm_site import weights
from cutesmith_evaluator.worker.graph_nodes import kernels_of
from cutesmith_evaluator.worker.inputs import Inputs
from cutesmith_evaluator.worker.numerics_bits import bits

Forward = Callable[[], list[Tensor]]
_new_graph, _capture = torch.cuda.CUDAGraph, torch.cuda.graph  # before judged code could replace them


class Replay:
    """`outputs`: of each call, written anew by each replay."""

    def __init__(self, calls: Sequence[Forward]) -> None:
        """Raises what CUDA or a call raises where it cannot be captured."""
        first = calls[0]()  # not captured: it tells the sizes, and what is made once is made
        self._slots = [digest_room(output, len(calls)) for output in first]
        self._weights = [weights(slots.shape[1], slots.device) for slots in self._slots]
        self._graph = _new_graph()
        with _capture(self._graph, capture_error_mode="thread_local"):
            self.outputs = [self._digested(place, call()) for place, call in enumerate(calls)]

    def words(self) -> list[list[int]]:
        """Replays it; a word for each output of each call, as `confirm_site.word` makes it."""
        self._graph.replay()
        made = [(slots * weigh).sum(dim=1) for slots, weigh in zip(self._slots, self._weights, strict=True)]
        return [list(one) for one in zip(*(each.tolist() for each in made), strict=True)]

    def _digested(self, place: int, outputs: list[Tensor]) -> list[Tensor]:
        for output, slots in zip(outputs, self._slots, strict=True):
            digest_into(slots[place], output)
        return outputs


def kernels_of_call(call: Forward) -> list[str] | None:
    """Symbols of the kernels that a call launches, by the driver; None where it does not say."""
    try:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with _capture(graph, capture_error_mode="thread_local"):
            outputs = call()
        found = kernels_of(graph.raw_cuda_graph())
        del outputs
        return found
    except (AttributeError, TypeError, OSError, RuntimeError):  # an older PyTorch or driver
        torch.cuda.synchronize()
        return None


def reads(inputs: Inputs) -> bool:
    """Whether a replay reads the inputs where they are, so that it sees what is written there afterwards."""
    found = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, Tensor)]
    return all(tensor.is_cuda for tensor in found)


def same_memory(old: Inputs, new: Inputs) -> bool:
    """Whether a replay of the old inputs reads the new ones: tensors are the same, all else is equal."""
    pairs = list(zip(tree_leaves(old), tree_leaves(new), strict=True))
    return all(one is other if isinstance(one, Tensor) else one == other for one, other in pairs)


def digest_room(output: Tensor, calls: int) -> Tensor:
    """Room for the digests of an output of each call."""
    return torch.zeros((calls, -(-output.numel() // PART)), dtype=torch.int64, device=output.device)


def digest_into(row: Tensor, output: Tensor) -> None:
    """As `confirm_site.digests`, by as few kernels as possible."""
    line = bits(output.reshape(-1))
    whole = line.numel() // PART * PART
    if whole:
        torch.sum(line[:whole].view(-1, PART), dim=1, dtype=torch.int64, out=row[: whole // PART])
    if whole < line.numel():
        torch.sum(line[whole:], dim=0, dtype=torch.int64, out=row[-1])
