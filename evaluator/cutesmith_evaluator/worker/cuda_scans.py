"""Eager's running sums as a GPU adds them, in fp32: on a CPU they are added in double, and what eager errs by there is
no measure for a kernel.

Of PyTorch's ops these alone are so much better on a CPU: others differ by less than the 4 ulp that every kernel has.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cutesmith_evaluator.worker.modes import Mode, kept_from_dynamo

Combine = Callable[[Tensor, Tensor], Tensor]

_SCANS: dict[object, Combine] = {
    torch.ops.aten.cumsum: torch.add,
    torch.ops.aten.cumprod: torch.mul,
    torch.ops.aten.logcumsumexp: torch.logaddexp,
}
_ACCUMULATE = {
    torch.add: np.add.accumulate,
    torch.mul: np.multiply.accumulate,
    torch.logaddexp: np.logaddexp.accumulate,
}
_NEUTRAL = {torch.add: 0.0, torch.mul: 1.0, torch.logaddexp: float("-inf")}
_LEAST, _MOST = 4, 9  # logarithms of the threads that CUDA gives a row
_BLOCK = 9  # of all threads
_THREADS, _ITEMS = 128, 24  # of a tile where the whole tensor is one row
_WINDOW = 32  # tiles whose totals one warp adds up


def like_cuda(device: torch.device) -> AbstractContextManager[object]:
    """Inside, a module on the CPU stands for one on a GPU."""
    return _CudaScans() if device.type == "cpu" else nullcontext()


class _CudaScans(Mode):
    """Only what is fp32 from input to result; of narrower types a GPU's scans are as narrow, and no model."""

    @kept_from_dynamo
    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        combine = _SCANS.get(getattr(func, "overloadpacket", None))
        if combine is None or not isinstance(result, Tensor) or not _is_fp32(args[0], result) or not result.dim():
            return result
        return scanned(args[0], args[1], combine)


def _is_fp32(*tensors: Tensor) -> bool:
    return all(tensor.dtype is torch.float32 for tensor in tensors)


def scanned(x: Tensor, dim: int, combine: Combine) -> Tensor:
    """The scan of an fp32 tensor along a dimension in CUDA's order: a tensor that is one row by tiles side by side,
    rows in memory by blocks of threads, along any other dimension by one thread after another."""
    rows = x.movedim(dim, -1)
    if x.numel() == rows.shape[-1] > 0:
        return _in_tiles(rows.reshape(-1), combine).reshape(x.shape)
    is_inner = x.stride(dim) == 1 or x.dim() == 1
    done = _in_blocks(rows.contiguous(), combine) if is_inner else _one_by_one(rows, combine)
    return done.movedim(-1, dim).contiguous()


def _one_by_one(rows: Tensor, combine: Combine) -> Tensor:
    return torch.from_numpy(_ACCUMULATE[combine](rows.numpy(), axis=-1))


def _in_tiles(row: Tensor, combine: Combine) -> Tensor:
    """Every thread's items one after another, from what the threads and tiles before it come to."""
    length, neutral = row.numel(), _NEUTRAL[combine]
    padded = torch.nn.functional.pad(row, (0, -length % (_THREADS * _ITEMS)), value=neutral)
    items = padded.view(-1, _THREADS, _ITEMS)
    threads = _one_by_one(items, combine)[..., -1].clone()
    _tree(threads, combine)
    before = combine(_tiles_before(threads[:, -1], combine)[:, None], _shifted(threads, neutral))
    items = torch.cat((combine(before, items[..., 0])[..., None], items[..., 1:]), -1)
    return _one_by_one(items, combine).reshape(-1)[:length]


def _tiles_before(totals: Tensor, combine: Combine) -> Tensor:
    """What all tiles before each come to: a window's totals as a tree, windows one after another."""
    neutral = _NEUTRAL[combine]
    windows = torch.nn.functional.pad(totals, (0, -totals.numel() % _WINDOW), value=neutral).view(-1, _WINDOW).clone()
    _tree(windows, combine)
    windows_before = _shifted(_one_by_one(windows[:, -1].contiguous(), combine), neutral)
    return combine(windows_before[:, None], _shifted(windows, neutral)).reshape(-1)[: totals.numel()]


def _shifted(scans: Tensor, neutral: float) -> Tensor:
    """Without the own value: what lies before it."""
    return torch.nn.functional.pad(scans[..., :-1], (1, 0), value=neutral)


def _in_blocks(rows: Tensor, combine: Combine) -> Tensor:
    """Each block of a row takes up the total of the one before it, and is then scanned by Sklansky's tree."""
    length = rows.shape[-1]
    size = 2 << _threads(rows.numel() // max(length, 1), length)
    out = rows.clone()
    for start in range(0, length, size):
        block = out[..., start : start + size]
        if start:
            block[..., 0] = combine(out[..., start - 1], block[..., 0])
        _tree(block, combine)
    return out


def _threads(rows: int, length: int) -> int:
    """The logarithm of the threads along a row: more where rows are long and few."""
    wide, high = max(length - 1, 0).bit_length(), max(rows - 1, 0).bit_length()
    return min(max(_LEAST, (_BLOCK + wide - high) // 2), _MOST)


def _tree(block: Tensor, combine: Combine) -> None:
    """In place: in each round, the upper half of every group takes up the last of the lower half."""
    length, half = block.shape[-1], 1
    places = torch.arange(length, device=block.device)
    while half < length:
        upper = places[(places & half) != 0]
        block[..., upper] = combine(block[..., (upper // half) * half - 1], block[..., upper])
        half *= 2
