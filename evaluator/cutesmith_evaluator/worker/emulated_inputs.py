"""A task at sizes that the emulated device gets through: dynamic dimensions cut, divisibility kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from cutesmith_evaluator.worker.emulated_drawing import drawn_at
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Group, Inputs, resized, tensors, total_bytes
from cutesmith_evaluator.worker.reference import Reference

ELEMENTS = 1 << 16  # of the largest input: some hundred blocks of a pointwise kernel, some rows of a wide reduction
_CLASS = 16  # sizes keep their remainder by this: vector widths and tiles divide it
_DRAWN_WHOLE = 16 << 20  # bytes of inputs up to which they are made whole and then cut
_FILLED = {torch.rand, torch.randn, torch.zeros, torch.ones}


@dataclass(frozen=True)
class Reduced(Reference):
    """The reference with smaller inputs. `sizes`: dimensions that change together, with their new size.

    `whole`: inputs of the task's own shapes, on device meta or real ones.
    """

    sizes: tuple[tuple[Group, int], ...] = ()
    whole: Inputs = ()

    def inputs(self, seed: int, device: torch.device | str) -> Inputs:
        if total_bytes(self.whole) > _DRAWN_WHOLE:
            shapes = {tuple(tensor.shape): self._cut_shape(place) for place, tensor in _placed(self.whole)}
            made = drawn_at(lambda: Reference.inputs(self, seed, device), shapes)
            if made is not None and all(made[place].shape == self._cut_shape(place) for place, _ in _placed(made)):  # type: ignore[attr-defined]
                return made
        made = Reference.inputs(self, seed, device)
        for group, size in self.sizes:
            made = resized(made, group, size, start=0)
        return made

    def _cut_shape(self, position: int) -> tuple[int, ...]:
        whole = self.whole[position]
        assert isinstance(whole, Tensor)
        cut = {dimension: size for group, size in self.sizes for place, dimension in group if place == position}
        return tuple(cut.get(dimension, extent) for dimension, extent in enumerate(whole.shape))


def without_memory(reference: Reference) -> Inputs | None:
    """The task's inputs on device meta; None where only making them would tell what they are."""
    made = _on_meta(reference) or _in_fakes(reference)
    if made is None:
        return None
    return tree_map(
        lambda value: _shaped(value, tuple(value.shape), "meta") if isinstance(value, Tensor) else value, made
    )


def _on_meta(reference: Reference) -> Inputs | None:
    """Where get_inputs leaves the device open. Fake tensors know more, and take a second to import; so does what torch
    has for numbers on meta, where no number is ever made."""
    try:
        with torch.device("meta"), _Unfilled():
            made = reference.inputs(0, "meta")
    except TaskError:
        return None
    return made if all(tensor.is_meta for tensor in tensors(made)) else None


class _Unfilled(TorchFunctionMode):
    """Tensors of random and equal numbers have a shape and a dtype, and no numbers."""

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _FILLED:
            return torch.empty(*args, **{name: value for name, value in (kwargs or {}).items() if name != "generator"})
        return func(*args, **(kwargs or {}))


def _in_fakes(reference: Reference) -> Inputs | None:
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return reference.inputs(0, "cpu")
    except TaskError:
        return None


def reduced(
    reference: Reference, whole: Inputs, groups: Sequence[Group], supported: Callable[[Inputs], bool]
) -> tuple[Reference, Inputs, tuple[str, ...]]:
    """The reference at smaller sizes, inputs of these without values, and in words what was cut.

    `whole`: the task's inputs, on device meta or real ones. `groups`: dimensions that the trace found free.
    `supported`: whether the candidate takes such inputs. Raises TaskError.
    """
    inputs = whole
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
        smaller = _shrunk(inputs, group, new)
        if not _in_memory(smaller, supported):  # a kernel may be made for this size alone, as for the length of a row
            continue
        inputs = smaller
        sizes.append((group, new))
        words.append(f"dimension {dimension} of input {position}: {new} instead of {old}")
    if not sizes:
        return reference, whole, ()
    fields = (reference.task, reference.cls, reference.make_init, reference.make_inputs)
    return Reduced(*fields, sizes=tuple(sizes), whole=whole), inputs, tuple(words)


def smaller_size(size: int, elements: int) -> int:
    """A size with which the largest input keeps to ELEMENTS: of the same divisibility, unless rows are too long."""
    if elements <= ELEMENTS:
        return size
    wanted = max(1, size * ELEMENTS // elements)
    low = size % _CLASS or _CLASS
    if low >= 4 * wanted:
        return min(size, max(2, wanted))
    return min(size, max(low, wanted - (wanted - size) % _CLASS))


def _shrunk(inputs: Inputs, group: Group, size: int) -> Inputs:
    changed = list(inputs)
    for position, dimension in group:
        tensor = changed[position]
        assert isinstance(tensor, Tensor)
        shape = (*tensor.shape[:dimension], size, *tensor.shape[dimension + 1 :])
        changed[position] = _shaped(tensor, shape, "meta")
    return tuple(changed)


def _in_memory(inputs: Inputs, supported: Callable[[Inputs], bool]) -> bool:
    """The answer for inputs in memory that is never written; False where there is not so much."""
    try:
        made = [_shaped(each, tuple(each.shape), "cpu") if isinstance(each, Tensor) else each for each in inputs]
    except RuntimeError:  # torch's, for memory that the machine has not
        return False
    return supported(tuple(made))


def _shaped(model: Tensor, shape: tuple[int, ...], device: str) -> Tensor:
    """A new tensor without values, its dimensions laid out as `model`'s are; those that it repeats are repeated."""
    order = sorted(range(model.dim()), key=lambda dimension: -model.stride(dimension))
    back = sorted(range(model.dim()), key=lambda place: order[place])
    kept = [1 if model.stride(dimension) == 0 else shape[dimension] for dimension in order]
    made = torch.empty(kept, dtype=model.dtype, device=device).permute(back)
    return made.expand(shape)


def _placed(inputs: Inputs) -> list[tuple[int, Tensor]]:
    return [(place, value) for place, value in enumerate(inputs) if isinstance(value, Tensor)]
