"""MaskedSoftmax row by row: a row stays in registers, so every tensor is read or written once.

For MaskedSoftmax in masked_softmax.py; written by CuteSmith. Fuses: div, masked_fill, _softmax.
Inference only: where autograd needs the result, or `explain` names a reason, the original code runs.

Evidence:
- nothing was run on this file yet
"""

import functools
import importlib.util
import os

import torch

COLUMNS = 16  # elements of a row
VECTOR = 8  # elements per access, 16 bytes where the tensors are aligned
THREADS_PER_ROW = 8  # threads that share a row
ROWS_PER_BLOCK = 16  # rows of a block

# Read once, at import: CUTESMITH_DISABLE=1 keeps the original code everywhere.
DISABLED = os.environ.get("CUTESMITH_DISABLE") == "1"
HAS_DSL = all(importlib.util.find_spec(name) is not None for name in ("cutlass", "tvm_ffi"))
PLAIN = (torch.Tensor, torch.nn.Parameter)  # subclasses may hold no memory that a kernel can read


def explain(module, scores, mask):
    """The first reason why the kernel cannot stand in for the module here, or None."""
    if DISABLED:
        return "CUTESMITH_DISABLE=1 is set"
    if not HAS_DSL:
        return "nvidia-cutlass-dsl or apache-tvm-ffi is not installed"
    if module.temperature != 1.5:
        return 'module.temperature is not 1.5'
    if not (
        type(scores) in PLAIN
        and scores.is_cuda
        and scores.dtype is torch.bfloat16
        and scores.is_contiguous()
    ):
        return "scores is not a contiguous bfloat16 CUDA tensor"
    if scores.dim() != 4 or scores.shape[1:] != (2, 16, 16):
        return "scores is not (*, 2, 16, 16)"
    if not 0 < scores.numel() < 2**31:
        return "scores has no elements, or 2**31 or more"
    if not (
        type(mask) in PLAIN
        and mask.get_device() == scores.get_device()
        and mask.dtype is torch.bool
        and mask.is_contiguous()
    ):
        return "mask is not a contiguous bool tensor on scores's device"
    if mask.dim() != 4 or mask.shape[:1] != scores.shape[:1] or mask.shape[1:] != (1, 16, 16):
        return "mask does not fit scores"
    if not 0 < mask.numel() < 2**31:
        return "mask has no elements, or 2**31 or more"
    if torch.is_grad_enabled() and scores.requires_grad:
        return "autograd needs the result: run under torch.no_grad() or torch.inference_mode()"
    if torch.is_autocast_enabled("cuda"):
        return "autocast is on: it would choose other dtypes"
    if not _capable(scores.get_device()):
        return "the device is older than sm_80"
    return None


def supports(module, scores, mask):
    """Whether the kernel computes what the module would, for these inputs, here and now."""
    return explain(module, scores, mask) is None


_DEVICES = {}


def _capable(index):
    if index not in _DEVICES:
        properties = torch.cuda.get_device_properties(index)  # torch.compile traces no get_device_capability
        _DEVICES[index] = (properties.major, properties.minor) >= (8, 0)
    return _DEVICES[index]


def forward(module, scores, mask):
    """The module's result. Call it only where `supports` is true."""
    if torch.compiler.is_compiling():
        return _OP(scores, mask)
    return _launch(scores, mask)


def warm_up(module, scores, mask):
    """Compiles for these inputs' device without launching: before a CUDA-graph capture, say."""
    _compiled(scores.device.index, True)


def _empty(scores, mask):
    return torch.empty_like(scores)


def _launch(scores, mask):
    y = _empty(scores, mask)
    index = scores.get_device()
    compiled = _compiled(index, not (scores.data_ptr() % 16 or mask.data_ptr() % 16))
    if torch.cuda.current_device() == index:
        compiled(scores, mask, y)
    else:
        with torch.cuda.device(index):
            compiled(scores, mask, y)
    return y


@functools.cache
def _program(vector):
    """The kernel and its host function, for accesses of `vector` elements. Imports the DSL (2-3 s)."""
    import operator

    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream

    CHUNKS = COLUMNS // vector  # accesses of a row
    STEPS = -(-CHUNKS // THREADS_PER_ROW)  # accesses of a thread
    WARPS_PER_ROW = max(THREADS_PER_ROW // 32, 1)

    @cute.jit
    def copy(tiles: cute.Tensor, chunk, fragment: cute.Tensor, step: cutlass.Constexpr):
        if cutlass.const_expr((step + 1) * THREADS_PER_ROW <= CHUNKS):
            cute.autovec_copy(tiles[None, chunk], fragment)
        else:
            if chunk < CHUNKS:
                cute.autovec_copy(tiles[None, chunk], fragment)

    def load(g, row, lane):
        """This thread's part of a row in fp32: STEPS accesses, THREADS_PER_ROW apart; zeros past the end."""
        tiles = cute.zipped_divide(g[row, None], (vector,))
        fragment = cute.make_rmem_tensor((vector, STEPS), g.element_type)
        if cutlass.const_expr(CHUNKS % THREADS_PER_ROW):
            fragment.fill(0)
        for step in range(STEPS):
            copy(tiles, step * THREADS_PER_ROW + lane, fragment[None, step], step)
        return fragment.load().to(cutlass.Float32)

    @cute.jit
    def store(result, g: cute.Tensor, row, lane, live):
        tiles = cute.zipped_divide(g[row, None], (vector,))
        fragment = cute.make_rmem_tensor((vector, STEPS), g.element_type)
        fragment.store(result.to(g.element_type))
        for step in cutlass.range_constexpr(STEPS):
            chunk = step * THREADS_PER_ROW + lane
            if live and chunk < CHUNKS:
                cute.autovec_copy(fragment[None, step], tiles[None, chunk])

    def keep(values, lane, neutral):
        """`values`, with `neutral` in the columns past the end of the row."""
        if STEPS * THREADS_PER_ROW == CHUNKS:
            return values
        fragment = cute.make_rmem_tensor((vector, STEPS), cutlass.Float32)
        fragment.store(values)
        blank(fragment[None, STEPS - 1], (STEPS - 1) * THREADS_PER_ROW + lane, neutral)
        return fragment.load()

    @cute.jit
    def blank(fragment: cute.Tensor, chunk, neutral):
        if chunk >= CHUNKS:
            fragment.fill(neutral)

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

    def reduce_row(values, op, combine, neutral, sRow, slot, tidx):
        """`values` of all threads of a row to one value."""
        return across(cutlass.Float32(values.reduce(op, neutral, 0)), combine, sRow, slot, tidx)

    @cute.kernel
    def masked_softmax_kernel(gMask: cute.Tensor, gScores: cute.Tensor, gY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        rows = cute.size(gY, mode=[0])
        lane = tidx % THREADS_PER_ROW
        at = bidx * ROWS_PER_BLOCK + tidx // THREADS_PER_ROW
        live = at < rows
        row = cutlass.min(at, rows - 1)  # threads past the last row redo it and store nothing
        smem = cutlass.memory.SmemAllocator()
        layout = cute.make_layout((2, ROWS_PER_BLOCK, WARPS_PER_ROW))
        sRow = smem.allocate_tensor(cutlass.Float32, layout, 4)
        mask = load(gMask, row, lane)
        scores = load(gScores, row, lane)
        picked = cute.where(mask != 0.0, -float('inf'), scores / 1.5)
        row_max = reduce_row(
            keep(picked, lane, -float('inf')), cute.ReductionOp.MAX, cute.math.max, -float('inf'), sRow, 0,
            tidx,
        )
        e = cute.math.exp(picked - row_max, fastmath=True)
        row_sum = reduce_row(keep(e, lane, 0.0), cute.ReductionOp.ADD, operator.add, 0.0, sRow, 1, tidx)
        store(e * (1.0 / row_sum), gY, row, lane, live)

    @cute.jit
    def masked_softmax(mScores: cute.Tensor, mMask: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        rows = cute.size(mY) // 16
        gMask = cute.make_tensor(
            mMask.iterator, cute.make_layout(((16, 2, rows // 32), 16), stride=((16, 0, 256), 1)),
        )
        gScores = cute.make_tensor(mScores.iterator, cute.make_layout((rows, 16), stride=(16, 1)))
        gY = cute.make_tensor(mY.iterator, cute.make_layout((rows, 16), stride=(16, 1)))
        grid = [cute.ceil_div(rows, ROWS_PER_BLOCK), 1, 1]
        masked_softmax_kernel(gMask, gScores, gY).launch(
            grid=grid, block=[THREADS_PER_ROW * ROWS_PER_BLOCK, 1, 1], stream=stream
        )

    return masked_softmax


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
        fake(cutlass.BFloat16, (cute.sym_int(), 2, 16, 16)),
        fake(cutlass.Boolean, (cute.sym_int(), 1, 16, 16)),
        fake(cutlass.BFloat16, (cute.sym_int(), 2, 16, 16)),
        make_fake_stream(use_tvm_ffi_env_stream=True),
        options="--enable-tvm-ffi",
    )


# An op, so that torch.compile and export see one opaque node; eager calls skip the dispatcher.
_NAME = "masked_softmax_" + (__name__.replace(".", "_") if __name__.isascii() else __name__.encode().hex())
if "_LIBRARY" in globals():  # reloaded: the old definition goes first
    _LIBRARY._destroy()
_LIBRARY = torch.library.Library("cutesmith", "FRAGMENT")
_SCHEMA = "(Tensor scores, Tensor mask) -> Tensor"
_LIBRARY.define(_NAME + _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
_LIBRARY.impl(_NAME, _launch, "CUDA")


@torch.library.register_fake(f"cutesmith::{_NAME}", lib=_LIBRARY)
def _fake(scores, mask):
    return _empty(scores, mask)


_OP = getattr(torch.ops.cutesmith, _NAME).default
