"""A task at sizes that the emulated device gets through: dynamic dimensions cut, divisibility kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cutesmith_evaluator.worker.inputs import Group, Inputs, resized, tensors
from cutesmith_evaluator.worker.reference import Reference

ELEMENTS = 1 << 16  # of the largest input: some hundred blocks of a pointwise kernel, some rows of a wide reduction
_CLASS = 16  # sizes keep their remainder by this: vector widths and tiles divide it


@dataclass(frozen=True)
class Reduced(Reference):
    """The reference with smaller inputs. `sizes`: dimensions that change together, with their new size."""

    sizes: tuple[tuple[Group, int], ...] = ()

    def inputs(self, seed: int, device: torch.device | str) -> Inputs:
        made = Reference.inputs(self, seed, device)
        for group, size in self.sizes:
            made = resized(made, group, size, start=0)
        return made


def reduced(
    reference: Reference, groups: Sequence[Group], supported: Callable[[Inputs], bool]
) -> tuple[Reference, tuple[str, ...]]:
    """The reference at smaller sizes, and in words what was cut. Raises TaskError.

    `groups`: dimensions that the trace found free. `supported`: whether the candidate takes such inputs.
    """
    inputs = reference.inputs(0, "cpu")
    sizes: list[tuple[Group, int]] = []
    words = []
    for group in groups:
        position, dimension = group[0]
        tensor = inputs[position]
        assert isinstance(tensor, Tensor)
        largest = max((each.numel() for each in tensors(inputs)), default=0)
        old = tensor.shape[dimension]
        new = smaller_size(old, largest)
        if new == old:
            continue
        smaller = resized(inputs, group, new, start=0)
        if not supported(smaller):  # a kernel may be made for this size alone, as for the length of a row
            continue
        inputs = smaller
        sizes.append((group, new))
        words.append(f"dimension {dimension} of input {position}: {new} instead of {old}")
    if not sizes:
        return reference, ()
    fields = (reference.task, reference.cls, reference.make_init, reference.make_inputs)
    return Reduced(*fields, sizes=tuple(sizes)), tuple(words)


def smaller_size(size: int, elements: int) -> int:
    """A size with which the largest input keeps to ELEMENTS: of the same divisibility, unless rows are too long."""
    if elements <= ELEMENTS:
        return size
    wanted = max(1, size * ELEMENTS // elements)
    low = size % _CLASS or _CLASS
    if low > 4 * wanted:
        return min(size, max(2, wanted))
    return min(size, max(low, wanted - (wanted - size) % _CLASS))
