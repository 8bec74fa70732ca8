"""Which sizes the emulated device gets through, of the same divisibility as the task's own."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from cutesmith_evaluator.worker.inputs import Group, Inputs, tensors

ELEMENTS = 1 << 16  # of the largest input: some hundred blocks of a pointwise kernel, some rows of a wide reduction
BESIDE = 4  # times as large is what stays whole where more rows cost little beside it: a product's other factor
_MOST_BESIDE = 3 << 20  # elements of the inputs and results that are cut: more tiles than a device runs blocks at once
_CLASS = 16  # sizes keep their remainder by this: vector widths and tiles divide it

Supported = Callable[[Inputs], bool]
Sizes = tuple[tuple[Group, int], ...]


def smaller_size(size: int, elements: int, wanted_elements: int = ELEMENTS) -> int:
    """A size with which a tensor of so many elements keeps to those wanted: of the same divisibility, unless rows are
    too long."""
    if elements <= wanted_elements:
        return size
    wanted = max(1, size * wanted_elements // elements)
    low = size % _CLASS or _CLASS
    if low >= 4 * wanted:
        return min(size, max(2, wanted))
    return min(size, max(low, wanted - (wanted - size) % _CLASS))


def beside(
    module: nn.Module, inputs: Inputs, sizes: Sizes, whole: Inputs, supported: Supported, elements: int
) -> tuple[Inputs, Sizes]:
    """Inputs cut to `sizes`, with sizes for so many elements of what is cut, results included: where a factor of a
    product stays whole, one tile of rows would tell little and save nothing. The same where nothing is known of the
    results."""
    elements = min(elements, _MOST_BESIDE)
    results = _result_elements(module, inputs)
    if results is None:
        return inputs, sizes
    changed = []
    for group, size in sizes:
        old = extent(whole, group)
        own = largest(tuple(shrunk(inputs, group, old)[position] for position, _ in group))
        new = smaller_size(old, max(own, results * old // size), elements)
        wider = shrunk(inputs, group, new)
        if in_memory(wider, supported):
            inputs, results = wider, results * new // size
        else:
            new = size
        changed.append((group, new))
    return inputs, tuple(changed)


def _result_elements(module: nn.Module, inputs: Inputs) -> int | None:
    """Of the largest result, without computing it; None where forward needs values."""
    bare = tuple(each.to("meta") if isinstance(each, Tensor) else each for each in inputs)
    try:
        with torch.no_grad():
            return largest(copy.deepcopy(module).to("meta")(*bare))
    except Exception:  # noqa: BLE001 - the user's code, which was not made for tensors without values
        return None


def largest(values: object) -> int:
    """Elements of the largest tensor."""
    return max((tensor.numel() for tensor in tensors(values)), default=0)


def state_of(module: nn.Module | None) -> tuple[Tensor, ...]:
    return tuple(module.state_dict().values()) if module is not None else ()


def extent(inputs: Inputs, group: Group) -> int:
    """The size of a group's dimensions."""
    position, dimension = group[0]
    tensor = inputs[position]
    assert isinstance(tensor, Tensor)
    return tensor.shape[dimension]


def shrunk(inputs: Inputs, group: Group, size: int) -> Inputs:
    """With another size of the group's dimensions, on device meta."""
    changed = list(inputs)
    for position, dimension in group:
        tensor = changed[position]
        assert isinstance(tensor, Tensor)
        shape = (*tensor.shape[:dimension], size, *tensor.shape[dimension + 1 :])
        changed[position] = shaped(tensor, shape, "meta")
    return tuple(changed)


def in_memory(inputs: Inputs, supported: Supported) -> bool:
    """The answer for inputs in memory that is never written; False where there is not so much."""
    try:
        made = [shaped(each, tuple(each.shape), "cpu") if isinstance(each, Tensor) else each for each in inputs]
    except RuntimeError:  # torch's, for memory that the machine has not
        return False
    return supported(tuple(made))


def shaped(model: Tensor, shape: tuple[int, ...], device: str) -> Tensor:
    """A new tensor without values, its dimensions laid out as `model`'s are; those that it repeats are repeated."""
    order = sorted(range(model.dim()), key=lambda dimension: -model.stride(dimension))
    back = sorted(range(model.dim()), key=lambda place: order[place])
    kept = [1 if model.stride(dimension) == 0 else shape[dimension] for dimension in order]
    made = torch.empty(kept, dtype=model.dtype, device=device).permute(back)
    return made.expand(shape)
