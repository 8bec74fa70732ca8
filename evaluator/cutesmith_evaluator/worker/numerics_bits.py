"""Exact comparisons: bits, and where NaN and infinities are."""

from __future__ import annotations

import torch
from torch import Tensor

from cutesmith_evaluator.worker.numerics import chunks

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
Mark = tuple[torch.Size, torch.dtype, int]
_ODD = 0x9E3779B97F4A7C15 - (1 << 64)  # 2**64 / golden ratio, as a signed word


def bits(line: Tensor) -> Tensor:
    """The elements of a real tensor of one dimension as integers of the same width."""
    return line.contiguous().view(_WORDS[line.element_size()])


def fingerprint(tensor: Tensor) -> int:
    """A 64-bit sum over the bits and their positions: equal for equal tensors, and hardly ever otherwise."""
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for start, (line,) in chunks(tensor):
        piece = bits(line).long()
        place = torch.arange(start, start + piece.numel(), device=piece.device)
        total += (piece + 1).mul_(_mixed(place)).sum()
    return int(total)


def _mixed(place: Tensor) -> Tensor:
    """A pseudo-random odd word for each position."""
    place.add_(1).mul_(_ODD)
    place.bitwise_xor_(place >> 29)
    return place.mul_(_ODD).bitwise_or_(1)


def mark(tensor: Tensor) -> Mark:
    """Equal for tensors of equal shapes, dtypes and bits."""
    return tensor.shape, tensor.dtype, fingerprint(tensor)


def equal_bits(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and fingerprint(one) == fingerprint(other)


def differing(got: Tensor, wanted: Tensor) -> Tensor:
    """True where values differ; NaN equals NaN, and infinities only those of their own sign."""
    if not wanted.is_floating_point():
        return got != wanted
    return (got != wanted) & ~(got.isnan() & wanted.isnan())


def special_differs(got: Tensor, eager: Tensor, *, strict: bool) -> Tensor:
    """True where `got` is not finite although `eager` is; with `strict`, also where other non-finite values differ."""
    if strict:
        return (~got.isfinite() | ~eager.isfinite()) & differing(got, eager)
    return ~got.isfinite() & eager.isfinite()
