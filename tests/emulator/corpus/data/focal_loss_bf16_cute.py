"""FocalLoss, a block per row; a row of 4096 is read once per group of reductions.

For FocalLoss in focal_loss.py; written by CuteSmith. Fuses: sigmoid, rsub, mul, log_sigmoid_forward, sub, add, pow, mean.
Inference only: where autograd needs the result, or `explain` names a reason, the original code runs.

Evidence:
- nothing was run on this file yet
"""

import functools
import importlib.util
import os

import torch

COLUMNS = 4096  # elements of a row
VECTOR = 8  # elements per access, 16 bytes where the tensors are aligned
THREADS_PER_ROW = 128  # threads that share a row
ROWS_PER_BLOCK = 1  # rows of a block
UNROLL = 4  # accesses in flight per thread and tensor

# Read once, at import: CUTESMITH_DISABLE=1 keeps the original code everywhere.
DISABLED = os.environ.get("CUTESMITH_DISABLE") == "1"
HAS_DSL = all(importlib.util.find_spec(name) is not None for name in ("cutlass", "tvm_ffi"))
PLAIN = (torch.Tensor, torch.nn.Parameter)  # subclasses may hold no memory that a kernel can read


def explain(module, logits, targets):
    """The first reason why the kernel cannot stand in for the module here, or None."""
    if DISABLED:
        return "CUTESMITH_DISABLE=1 is set"
    if not HAS_DSL:
        return "nvidia-cutlass-dsl or apache-tvm-ffi is not installed"
    if module.alpha != 0.25:
        return 'module.alpha is not 0.25'
    if module.gamma != 2.0:
        return 'module.gamma is not 2.0'
    if not (
        type(logits) in PLAIN
        and logits.is_cuda
        and logits.dtype is torch.bfloat16
        and logits.is_contiguous()
    ):
        return "logits is not a contiguous bfloat16 CUDA tensor"
    if logits.shape != (8, 512):
        return "logits is not of shape (8, 512)"
    if not (
        type(targets) in PLAIN
        and targets.get_device() == logits.get_device()
        and targets.dtype is torch.bfloat16
        and targets.is_contiguous()
    ):
        return "targets is not a contiguous bfloat16 tensor on logits's device"
    if targets.shape != (8, 512):
        return "targets is not of shape (8, 512)"
    if torch.is_grad_enabled() and (logits.requires_grad or targets.requires_grad):
        return "autograd needs the result: run under torch.no_grad() or torch.inference_mode()"
    if torch.is_autocast_enabled("cuda"):
        return "autocast is on: it would choose other dtypes"
    if not _capable(logits.get_device()):
        return "the device is older than sm_80"
    return None


def supports(module, logits, targets):
    """Whether the kernel computes what the module would, for these inputs, here and now."""
    return explain(module, logits, targets) is None


_DEVICES = {}


def _capable(index):
    if index not in _DEVICES:
        _DEVICES[index] = torch.cuda.get_device_capability(index) >= (8, 0)
    return _DEVICES[index]


def forward(module, logits, targets):
    """The module's result. Call it only where `supports` is true."""
    if torch.compiler.is_compiling():
        return _OP(logits, targets)
    return _launch(logits, targets)


def warm_up(module, logits, targets):
    """Compiles for these inputs' device without launching: before a CUDA-graph capture, say."""
    _compiled(logits.device.index, True)


def _empty(logits, targets):
    return logits.new_empty(())


def _launch(logits, targets):
    y = _empty(logits, targets)
    index = logits.get_device()
    compiled = _compiled(index, not (logits.data_ptr() % 16 or targets.data_ptr() % 16))
    if torch.cuda.current_device() == index:
        compiled(logits, targets, y.view(1))
    else:
        with torch.cuda.device(index):
            compiled(logits, targets, y.view(1))
    return y


@functools.cache
def _program(vector):
    """The kernel and its host function, for accesses of `vector` elements. Imports the DSL (2-3 s)."""
    import operator

    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream

    CHUNKS = COLUMNS // vector  # accesses of a row
    WHOLE = CHUNKS // (THREADS_PER_ROW * UNROLL)  # rounds in which every thread has UNROLL accesses
    WARPS_PER_ROW = THREADS_PER_ROW // 32

    def load(g, row, chunk, width, steps, stride):
        """`steps` accesses of `width` elements of a row in fp32, `stride` accesses apart."""
        tiles = cute.zipped_divide(g[row, None], (width,))
        fragment = cute.make_rmem_tensor((width, steps), g.element_type)
        for step in range(steps):
            cute.autovec_copy(tiles[None, chunk + step * stride], fragment[None, step])
        return fragment.load().to(cutlass.Float32)

    def quotient(a, b):
        """a / b by the approximate reciprocal (2^-22), for results in half precision; b is 1 or more."""
        reciprocal = cute.make_rmem_tensor(b.shape, cutlass.Float32)
        reciprocal.store(b)
        for i in range(cute.size(reciprocal)):
            reciprocal[i] = cute.arch.rcp_approx(reciprocal[i])
        return a * reciprocal.load()

    def log1p(x):
        """log(1 + x) for x >= 0, for results in half precision: the series where 1 + x would round."""
        return cute.where(x < 2.0**-10, x - 0.5 * x * x, cute.math.log(1.0 + x, fastmath=True))

    @cute.jit
    def across(value, combine: cutlass.Constexpr, sRow: cute.Tensor, slot: cutlass.Constexpr, tidx):
        """One value per thread to one per row: shuffles in the warp, shared memory beyond; one fixed order."""
        value = cute.arch.warp_reduction(value, combine, threads_in_group=min(THREADS_PER_ROW, 32))
        if cutlass.const_expr(WARPS_PER_ROW > 1):
            row, warp = tidx // THREADS_PER_ROW, tidx % THREADS_PER_ROW // 32
            if tidx % 32 == 0:
                sRow[slot, row, warp] = value
            cute.arch.sync_threads()
            value = sRow[slot, row, 0]
            for other in cutlass.range_constexpr(1, WARPS_PER_ROW):
                value = combine(value, sRow[slot, row, other])
        return value

    def pass_1(row, chunk, width, steps, stride, gTargets, gLogits, row_sum):
        targets = load(gTargets, row, chunk, width, steps, stride)
        logits = load(gLogits, row, chunk, width, steps, stride)
        difference = 1.0 - targets
        negated = -logits
        e = cute.math.exp(negated, fastmath=True)
        ratio = quotient(1.0, 1.0 + e)
        difference_2 = 1.0 - (ratio * targets + (1.0 - ratio) * difference)
        product = (targets * 0.25 + difference * 0.75) * (difference_2 * difference_2)
        total = difference * logits + cute.where(negated > 88.0, negated, log1p(e))
        row_sum = row_sum + cutlass.Float32((product * total).reduce(cute.ReductionOp.ADD, 0.0, 0))
        return row_sum

    @cute.kernel
    def focal_loss_kernel(gTargets: cute.Tensor, gLogits: cute.Tensor, gY: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        tidx = lane
        smem = cutlass.memory.SmemAllocator()
        sRow = smem.allocate_tensor(cutlass.Float32, cute.make_layout((1, 1, WARPS_PER_ROW)), 4)
        row_sum = cutlass.Float32(0.0)
        for tile in cutlass.range(WHOLE):
            row_sum = pass_1(
                row, tile * THREADS_PER_ROW * UNROLL + lane, vector, UNROLL, THREADS_PER_ROW, gTargets,
                gLogits, row_sum,
            )
        for chunk in cutlass.range(WHOLE * THREADS_PER_ROW * UNROLL + lane, CHUNKS, THREADS_PER_ROW):
            row_sum = pass_1(row, chunk, vector, 1, THREADS_PER_ROW, gTargets, gLogits, row_sum)
        row_sum = across(row_sum, operator.add, sRow, 0, tidx)
        if lane == 0:
            gY[row, 0] = (row_sum * 0.000244140625).to(gY.element_type)

    @cute.jit
    def focal_loss(mLogits: cute.Tensor, mTargets: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        rows = cute.size(mY)
        gTargets = cute.make_tensor(mTargets.iterator, cute.make_layout((rows, 4096), stride=(0, 1)))
        gLogits = cute.make_tensor(mLogits.iterator, cute.make_layout((rows, 4096), stride=(0, 1)))
        gY = cute.make_tensor(mY.iterator, cute.make_layout((rows, 1), stride=(0, 0)))
        grid = [cute.ceil_div(rows, ROWS_PER_BLOCK), 1, 1]
        focal_loss_kernel(gTargets, gLogits, gY).launch(
            grid=grid, block=[THREADS_PER_ROW * ROWS_PER_BLOCK, 1, 1], stream=stream
        )

    return focal_loss


_COMPILED = {}


def _compiled(index, aligned):
    """The launcher for a device. `aligned`: every tensor starts at a multiple of 16 bytes."""
    found = _COMPILED.get((index, aligned))
    if found is None:
        found = _COMPILED[index, aligned] = _compile(aligned)
    return found


def _compile(aligned):
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    def fake(dtype, shape):
        align = 16 if aligned else dtype.width // 8 if dtype.width >= 8 else 1
        order = tuple(reversed(range(len(shape))))
        return make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=align)

    return cute.compile(
        _program(VECTOR if aligned else 1),
        fake(cutlass.BFloat16, (8, 512)),
        fake(cutlass.BFloat16, (8, 512)),
        fake(cutlass.BFloat16, (1,)),
        make_fake_stream(use_tvm_ffi_env_stream=True),
        options="--enable-tvm-ffi",
    )


# An op, so that torch.compile and export see one opaque node; eager calls skip the dispatcher.
_NAME = "focal_loss_" + (__name__.replace(".", "_") if __name__.isascii() else __name__.encode().hex())
if "_LIBRARY" in globals():  # reloaded: the old definition goes first
    _LIBRARY._destroy()
_LIBRARY = torch.library.Library("cutesmith", "FRAGMENT")
_SCHEMA = "(Tensor logits, Tensor targets) -> Tensor"
_LIBRARY.define(_NAME + _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
_LIBRARY.impl(_NAME, _launch, "CUDA")


@torch.library.register_fake(f"cutesmith::{_NAME}", lib=_LIBRARY)
def _fake(logits, targets):
    return _empty(logits, targets)


_OP = getattr(torch.ops.cutesmith, _NAME).default
