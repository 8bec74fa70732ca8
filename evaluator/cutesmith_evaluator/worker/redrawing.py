"""Other values for a module's parameters and buffers: those of a constructor (ones, zeros) hide what is ignored."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import torch
from torch import Tensor, nn

from cutesmith_evaluator.worker.checks_state import named_state
from cutesmith_evaluator.worker.inputs import REDRAWN, distinct

_SEED = 7919  # added to a tensor's place: inputs and state are never drawn alike
_LEAST = 1 / 8  # of its centre: a variance or probability must not come near zero


def floating_state(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The parameters and buffers that can be redrawn, each once, by name."""
    for name, tensor in named_state(module):
        if tensor.dtype in REDRAWN and tensor.layout == torch.strided and tensor.numel():
            yield name, tensor


def read_state(module: nn.Module, names: Collection[str]) -> dict[str, Tensor]:
    """Copies of the present values, without expanded dimensions."""
    return {name: distinct(tensor).detach().clone() for name, tensor in floating_state(module) if name in names}


def redrawn_state(module: nn.Module, names: Collection[str], seed: int = _SEED) -> dict[str, Tensor]:
    """New values by name: the same for a seed, none constant, on the scale of the present ones.

    Buffers without negative values (variances, probabilities) get positive ones; infinities and NaN stay in place.
    """
    buffers = {id(buffer) for buffer in module.buffers()}
    drawn: dict[str, Tensor] = {}
    for place, (name, tensor) in enumerate(floating_state(module)):
        if name in names:
            old = distinct(tensor).detach()
            generator = torch.Generator(tensor.device).manual_seed(seed + place)
            positive = id(tensor) in buffers and not bool((old < 0).any())
            drawn[name] = _redrawn(old, generator, positive=positive)
    return drawn


@torch.no_grad()
def write_state(module: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Writes values by name into the module's own memory."""
    for name, tensor in floating_state(module):
        if name in values:
            distinct(tensor).copy_(values[name])


def _redrawn(old: Tensor, generator: torch.Generator, *, positive: bool) -> Tensor:
    finite = old.isfinite()
    centre, spread = _scale(old[finite].float(), old.shape)
    new = torch.empty_like(old).normal_(generator=generator).mul_(spread).add_(centre)
    if positive:
        new = new.abs_().clamp_(min=_LEAST * centre)
    return torch.where(finite, new, old)


def _scale(values: Tensor, shape: torch.Size) -> tuple[float, float]:
    """Mean and standard deviation to draw with: near the values' own, except where these are too much alike.

    Weights of one dimension that are all equal become 1 ± 0.5; a matrix of zeros gets what keeps its products near 1.
    """
    low, high = (float(values.min()), float(values.max())) if values.numel() else (0.0, 0.0)
    if low == high and math.prod(shape) == max(shape, default=1):
        return 1.0, 0.5
    if low == high == 0.0:
        centre = (math.prod(shape) / shape[0]) ** -0.5
        return centre, centre / 2
    centre = float(values.mean())
    return centre, max(float(values.std()), abs(centre) / 2)
