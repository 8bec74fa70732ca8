"""A task at sizes that the emulated device gets through: dynamic dimensions cut, divisibility kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from cutesmith_evaluator.worker.emulated_drawing import drawn_at
from cutesmith_evaluator.worker.emulated_sizes import (
    BESIDE,
    ELEMENTS,
    Sizes,
    Supported,
    beside,
    extent,
    in_memory,
    largest,
    shaped,
    shrunk,
    smaller_size,
    state_of,
)
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Group, Inputs, resized, tensors, total_bytes
from cutesmith_evaluator.worker.reference import Reference

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
        lambda value: shaped(value, tuple(value.shape), "meta") if isinstance(value, Tensor) else value, made
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
    reference: Reference,
    whole: Inputs,
    groups: Sequence[Group],
    supported: Callable[[Inputs], bool],
    module: nn.Module | None = None,
) -> tuple[Reference, Inputs, tuple[str, ...]]:
    """The reference at smaller sizes, inputs of these without values, and in words what was cut.

    `whole`: the task's inputs, on device meta or real ones. `groups`: dimensions that the trace found free.
    `supported`: whether the candidate takes such inputs. `module`: one of the reference's, if its state is to count.
    Raises TaskError.
    """
    inputs, sizes = _cut(whole, groups, supported)
    kept = largest((inputs, state_of(module)))
    if sizes and kept > BESIDE * ELEMENTS:
        made = module or reference.build("cpu")
        inputs, sizes = beside(made, inputs, sizes, whole, supported, kept // BESIDE)
    if not sizes:
        return reference, whole, ()
    fields = (reference.task, reference.cls, reference.make_init, reference.make_inputs)
    return Reduced(*fields, sizes=sizes, whole=whole), inputs, tuple(_words(whole, *each) for each in sizes)


def _cut(whole: Inputs, groups: Sequence[Group], supported: Supported) -> tuple[Inputs, Sizes]:
    inputs = whole
    sizes: list[tuple[Group, int]] = []
    for group in groups:
        old = extent(inputs, group)
        new = smaller_size(old, largest(inputs))
        if new == old:
            continue
        smaller = shrunk(inputs, group, new)
        if not in_memory(smaller, supported):  # a kernel may be made for this size alone, as for the length of a row
            continue
        inputs = smaller
        sizes.append((group, new))
    return inputs, tuple(sizes)


def _words(whole: Inputs, group: Group, size: int) -> str:
    position, dimension = group[0]
    return f"dimension {dimension} of input {position}: {size} instead of {extent(whole, group)}"


def _placed(inputs: Inputs) -> list[tuple[int, Tensor]]:
    return [(place, value) for place, value in enumerate(inputs) if isinstance(value, Tensor)]
