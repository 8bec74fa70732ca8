"""Outputs that another process left in files. Nothing in them, and nothing said of them, is taken on trust."""

from __future__ import annotations

import os
import stat
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from cutesmith_evaluator.confirmation import PART, Given
from cutesmith_evaluator.worker.confirm_site import digests


class HandedError(Exception):
    """What was handed over is no output; `str()` completes "On fresh inputs, …"."""


def shell(given: Given) -> Tensor:
    """A tensor of that layout without memory. Raises HandedError where there can be none."""
    dtype = getattr(torch, given.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise HandedError("an output of no possible dtype was handed over")
    try:
        return torch.empty_strided(given.shape, given.strides, dtype=dtype, device="meta")
    except (RuntimeError, TypeError, ValueError) as error:
        raise HandedError("an output of no possible layout was handed over") from error


def received(given: Given, wanted: Tensor) -> tuple[Tensor, Tensor | None]:
    """The output, on the device of `wanted` and of its shape and dtype, and which of its elements count, a bool each
    (None: all). `given` says nothing of the layout that `wanted` does not. Raises HandedError."""
    count = wanted.numel() if given.blocks is None else sum(count for _, count in given.blocks)
    line = _elements(Path(given.path), count, wanted.dtype)
    if given.digests is not None and not _agrees(line, given.blocks, given.digests):
        raise HandedError("the output is another than the one that was made while the clock ran")
    known = None if given.mask is None else _elements(Path(given.mask), count, torch.bool)
    if given.blocks is not None:
        known = _scattered(torch.ones(count, dtype=torch.bool) if known is None else known, given.blocks, wanted)
        line = _scattered(line, given.blocks, wanted)
    judged = None if known is None else known.view(wanted.shape).to(wanted.device)
    return line.to(wanted.device).view(wanted.shape), judged


def _agrees(line: Tensor, blocks: tuple[tuple[int, int], ...] | None, said: tuple[int, ...]) -> bool:
    """Whether the elements have the digests that were said of all parts. A block is a whole part."""
    if blocks is None:
        return digests(line).tolist() == list(said)
    ends = accumulate(count for _, count in blocks)
    made = [int(digests(line[end - count : end])) for (_, count), end in zip(blocks, ends, strict=True)]
    places = [first // PART for first, _ in blocks]
    return places[-1] < len(said) and made == [said[place] for place in places]


def _scattered(line: Tensor, blocks: tuple[tuple[int, int], ...], wanted: Tensor) -> Tensor:
    """The elements in their places, zero elsewhere; on the device of `wanted`."""
    line = line.to(wanted.device)
    whole = torch.zeros(wanted.numel(), dtype=line.dtype, device=wanted.device)
    ends = accumulate(count for _, count in blocks)
    for (first, count), end in zip(blocks, ends, strict=True):
        whole[first : first + count] = line[end - count : end]
    return whole


def _elements(path: Path, count: int, dtype: torch.dtype) -> Tensor:
    """All of a file, which must hold so many elements and be no link, pipe or device."""
    stored = torch.uint8 if dtype is torch.bool else dtype
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - a descriptor
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size != count * stored.itemsize:
                raise HandedError("what was handed over is not an output of this size")
            content = bytearray(file.read(status.st_size))
    except OSError as error:
        raise HandedError("no output was handed over") from error
    line = torch.frombuffer(content, dtype=stored) if content else torch.empty(0, dtype=stored)
    if line.numel() != count:
        raise HandedError("what was handed over is not an output of this size")
    return line != 0 if dtype is torch.bool else line
