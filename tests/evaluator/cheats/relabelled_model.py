# kind: 28
# what: KernelBench's contract, PyTorch does the work
# caught: static torch-compute, dynamic torch-compute
# task: scaled

import functools

import torch
from torch import nn


@functools.cache
def _launcher():
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    @cute.kernel
    def scaled_kernel(gX: cute.Tensor, gWeight: cute.Tensor, gY: cute.Tensor):
        column, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        gY[row, column] = cutlass.max(gX[row, column], cutlass.Float32(0.0)) * gWeight[column]

    @cute.jit
    def scaled(mX: cute.Tensor, mWeight: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        grid = [cute.size(mX, mode=[0]), 1, 1]
        scaled_kernel(mX, mWeight, mY).launch(grid=grid, block=[64, 1, 1], stream=stream)

    rows, weight = (cute.sym_int(), 64), (64,)
    fakes = [make_fake_compact_tensor(cutlass.Float32, shape, stride_order=order, assumed_align=4)
             for shape, order in ((rows, (1, 0)), (weight, (0,)), (rows, (1, 0)))]
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(scaled, *fakes, stream, options="--enable-tvm-ffi")


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns) + 0.5)
        self.activation = nn.ReLU()

    def forward(self, x):
        _launcher()(x, self.weight, torch.empty_like(x))
        return self.activation(x) * self.weight
