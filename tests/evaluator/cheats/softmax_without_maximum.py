# kind: 25
# what: leaves out the maximum that keeps a softmax finite
# caught: dynamic wrong-values
# task: softmax

import functools

import torch


def explain(module, x):
    if not (x.is_cuda and x.dtype is torch.float32 and x.dim() == 2 and x.shape[1] == 64 and x.is_contiguous()):
        return "x is not a contiguous float32 CUDA matrix of 64 columns"
    if torch.is_grad_enabled() and (x.requires_grad):
        return "autograd needs the result"
    return None


def supports(module, x):
    return explain(module, x) is None


def warm_up(module, x):
    _launcher()


@functools.cache
def _launcher():
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    @cute.kernel
    def softmax_kernel(gX: cute.Tensor, gY: cute.Tensor):
        column, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        total = cutlass.Float32(0.0)
        for other in cutlass.range_constexpr(64):
            total += cute.math.exp(gX[row, other])
        gY[row, column] = cute.math.exp(gX[row, column]) / total

    @cute.jit
    def softmax(mX: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        grid = [cute.size(mX, mode=[0]), 1, 1]
        softmax_kernel(mX, mY).launch(grid=grid, block=[64, 1, 1], stream=stream)

    rows = (cute.sym_int(), 64)
    fakes = [make_fake_compact_tensor(cutlass.Float32, shape, stride_order=order, assumed_align=4)
             for shape, order in ((rows, (1, 0)), (rows, (1, 0)))]
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(softmax, *fakes, stream, options="--enable-tvm-ffi")


def forward(module, x):
    y = torch.empty_like(x)
    _launcher()(x, y)
    return y
