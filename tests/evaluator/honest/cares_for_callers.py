# what: a lock around the cache, a named range, a stream told of, a script's own block
# task: scaled

import functools
import threading

import torch

_LOCK = threading.Lock()


def explain(module, x):
    if not (x.is_cuda and x.dtype is torch.float32 and x.dim() == 2 and x.shape[1] == 64 and x.is_contiguous()):
        return "x is not a contiguous float32 CUDA matrix of 64 columns"
    if torch.is_grad_enabled() and (x.requires_grad or module.weight.requires_grad):
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


def forward(module, x):
    torch._check(x.shape[1] == 64, lambda: "64 columns")
    y = torch.empty_like(x)
    with _LOCK:
        launch = _launcher()
    with torch.profiler.record_function("scaled"):
        launch(x, module.weight, y)
    x.record_stream(torch.cuda.current_stream())
    return y


if __name__ == "__main__":
    import time

    begin = time.perf_counter()
    x = torch.randn(8, 64, device="cuda")
    print(torch.relu(x).sum().item(), time.perf_counter() - begin)
