"""Inputs to check a candidate on: the task's own, other distributions in place, and other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.numerics import CHUNK
from cutesmith_evaluator.worker.reference import Reference

Inputs = tuple[object, ...]
Group = tuple[tuple[int, int], ...]  # (position, dimension) pairs that change together
Fill = Callable[[Tensor, torch.Generator], None]

REDRAWN = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def draw(reference: Reference, seed: int, device: torch.device) -> Inputs:
    """The task's own inputs, made on the device itself where its get_inputs allows that (a GPU draws 100 times faster).

    Raises TaskError.
    """
    if device.type == "cpu":
        return reference.inputs(seed, device)
    try:
        with device:
            return reference.inputs(seed, device)
    except TaskError:  # it mixes in tensors or generators of the CPU
        return reference.inputs(seed, device)


def tensors(values: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def total_bytes(values: object) -> int:
    """Bytes of the distinct elements of all tensors."""
    return sum(distinct(tensor).numel() * tensor.element_size() for tensor in tensors(values))


def distinct(tensor: Tensor) -> Tensor:
    """The tensor without its expanded dimensions: every element once."""
    ends = [slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride()]
    return tensor[tuple(ends)] if ends else tensor


def redraw(inputs: Inputs, distribution: str, seed: int) -> bool:
    """Overwrites every floating tensor in place; other inputs stay. False when there is none to redraw."""
    chosen = [tensor for tensor in tensors(inputs) if tensor.dtype in REDRAWN and tensor.numel()]
    for place, tensor in enumerate(chosen):
        generator = torch.Generator(tensor.device).manual_seed(seed * 1009 + place)
        for piece in _pieces(distinct(tensor)):
            DISTRIBUTIONS[distribution](piece, generator)
    return bool(chosen)


def resized(inputs: Inputs, group: Group, size: int, start: int = 0) -> Inputs:
    """New inputs whose dimensions of `group` have `size`, cut from (and, where larger, repeating) the given ones.

    Values stay the task's own, so that indices stay in range and probabilities stay probabilities.
    """
    changed = list(inputs)
    for position, dimension in group:
        tensor = changed[position]
        assert isinstance(tensor, Tensor)
        places = (torch.arange(size, device=tensor.device) + start) % tensor.shape[dimension]
        changed[position] = _in_order_of(tensor.index_select(dimension, places), tensor)
    return tuple(changed)


def cut(inputs: Inputs, positions: tuple[int, ...], start: int, stop: int) -> Inputs:
    """Views of the inputs in which dimension 0 of the tensors at `positions` is sliced."""
    return tuple(
        value[start:stop] if position in positions and isinstance(value, Tensor) else value
        for position, value in enumerate(inputs)
    )


def odd_sizes(size: int) -> list[int]:
    """Sizes to try in place of `size`: tiny ones, and an odd one for the tails of vectors and tiles."""
    odd = min(size + 1 - size % 2 if size % 2 == 0 else size - 2, 4099)
    return [each for each in dict.fromkeys((odd, 1, 3, 7)) if each > 0 and each != size]


def _pieces(base: Tensor) -> Iterator[Tensor]:
    yield from base.view(-1).split(CHUNK) if base.is_contiguous() else (base,)


def _in_order_of(tensor: Tensor, model: Tensor) -> Tensor:
    """`tensor` with its dimensions laid out in memory as `model`'s are."""
    order = sorted(range(model.dim()), key=lambda dimension: -model.stride(dimension))
    back = sorted(range(model.dim()), key=lambda place: order[place])
    return tensor.permute(order).contiguous().permute(back)


def _normal(piece: Tensor, generator: torch.Generator) -> None:
    piece.normal_(generator=generator)


def _uniform(piece: Tensor, generator: torch.Generator) -> None:
    piece.uniform_(generator=generator)


def _wide(piece: Tensor, generator: torch.Generator) -> None:
    """Both signs, exponents uniform: 2**±20, for float16 2**±8."""
    reach = 8 if piece.dtype == torch.float16 else 20
    signs = torch.empty_like(piece).uniform_(-1, 1, generator=generator).sign_()
    piece.uniform_(-reach, reach, generator=generator).exp2_().mul_(signs)


def _equal(piece: Tensor, generator: torch.Generator) -> None:
    piece.fill_(0.7071)


def _large(piece: Tensor, generator: torch.Generator) -> None:
    piece.normal_(generator=generator).mul_(30)


def _nan(piece: Tensor, generator: torch.Generator) -> None:
    _normal(piece, generator)
    piece.masked_fill_(_sprinkled(piece, generator), float("nan"))


def _infinite(piece: Tensor, generator: torch.Generator) -> None:
    _normal(piece, generator)
    for value in (float("inf"), float("-inf")):
        piece.masked_fill_(_sprinkled(piece, generator), value)


def _sprinkled(piece: Tensor, generator: torch.Generator) -> Tensor:
    """About 64 elements of a long piece, so that most rows keep none; at least one of a short piece."""
    chance = torch.rand(piece.shape, device=piece.device, generator=generator)
    window = max(piece.numel() // 64, min(16, piece.numel()))
    return chance <= chance.flatten()[:window].min()


DISTRIBUTIONS: dict[str, Fill] = {
    "normal": _normal,
    "uniform [0, 1)": _uniform,
    "wide range": _wide,
    "all equal": _equal,
    "large (30 × normal)": _large,
    "NaN sprinkled": _nan,
    "±Inf sprinkled": _infinite,
}
# Sums of equal numbers round all one way, so there the order of a sum decides and not the care taken.
IMPRECISE = ("all equal",)
STRICT = ("NaN sprinkled", "±Inf sprinkled")  # where NaN and infinities must be eager's own
