# what: KernelBench's contract, the DSL imported at the top
# task: scaled

import functools

import torch
from torch import nn




import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def scaled_kernel(gX: cute.Tensor, gWeight: cute.Tensor, gY: cute.Tensor):
    column, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    gY[row, column] = cutlass.max(gX[row, column], cutlass.Float32(0.0)) * gWeight[column]


@cute.jit
def scaled(mX: cute.Tensor, mWeight: cute.Tensor, mY: cute.Tensor):
    scaled_kernel(mX, mWeight, mY).launch(grid=[cute.size(mX, mode=[0]), 1, 1], block=[64, 1, 1])


COMPILED = {}


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns) + 0.5)

    def forward(self, x):
        y = torch.empty_like(x)
        tensors = [from_dlpack(t.detach()) for t in (x, self.weight, y)]
        key = (x.shape, x.dtype)
        if key not in COMPILED:
            COMPILED[key] = cute.compile(scaled, *tensors)
        COMPILED[key](*tensors)
        return y
