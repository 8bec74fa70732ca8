"""ResidualLayerNorm row by row: a row stays in registers, so every tensor is read or written once.

For ResidualLayerNorm in residual_layer_norm.py; written by CuteSmith. Fuses: add, layer_norm.
Inference only: where autograd needs the result, or `explain` names a reason, the original code runs.

Evidence:
- nothing was run on this file yet
"""

import functools
import importlib.util
import os

import torch

COLUMNS = 259  # elements of a row
VECTOR = 1  # elements per access, 16 bytes where the tensors are aligned
THREADS_PER_ROW = 128  # threads that share a row
ROWS_PER_BLOCK = 1  # rows of a block

# Read once, at import: CUTESMITH_DISABLE=1 keeps the original code everywhere.
DISABLED = os.environ.get("CUTESMITH_DISABLE") == "1"
HAS_DSL = all(importlib.util.find_spec(name) is not None for name in ("cutlass", "tvm_ffi"))
PLAIN = (torch.Tensor, torch.nn.Parameter)  # subclasses may hold no memory that a kernel can read


def explain(module, x, residual):
    """The first reason why the kernel cannot stand in for the module here, or None."""
    if DISABLED:
        return "CUTESMITH_DISABLE=1 is set"
    if not HAS_DSL:
        return "nvidia-cutlass-dsl or apache-tvm-ffi is not installed"
    try:
        norm_weight = module.norm.weight
        norm_bias = module.norm.bias
        if module.dropout.__class__.__qualname__ != 'Dropout':
            return "module.dropout.__class__.__qualname__ is not 'Dropout'"
        if module.dropout.inplace is not False:
            return 'module.dropout.inplace is not False'
        if module.dropout.p != 0.1:
            return 'module.dropout.p is not 0.1'
        if module.dropout.training:
            return 'module.dropout.training is not False'
        if module.norm.__class__.__qualname__ != 'LayerNorm':
            return "module.norm.__class__.__qualname__ is not 'LayerNorm'"
        if module.norm.eps != 1e-05:
            return 'module.norm.eps is not 1e-05'
        if module.norm.normalized_shape != (259,):
            return 'module.norm.normalized_shape is not (259,)'
    except (AttributeError, LookupError, TypeError):
        return "the module is not put together as the one that the kernel was made for"
    if not (type(x) in PLAIN and x.is_cuda and x.dtype is torch.float32 and x.is_contiguous()):
        return "x is not a contiguous float32 CUDA tensor"
    if x.dim() != 2 or x.shape[1] != 259:
        return "x is not (*, 259)"
    if not 0 < x.numel() < 2**31:
        return "x has no elements, or 2**31 or more"
    if not (
        type(residual) in PLAIN
        and residual.get_device() == x.get_device()
        and residual.dtype is torch.float32
        and residual.is_contiguous()
    ):
        return "residual is not a contiguous float32 tensor on x's device"
    if residual.shape != x.shape:
        return "residual and x differ in shape"
    if not (
        type(norm_weight) in PLAIN
        and norm_weight.get_device() == x.get_device()
        and norm_weight.dtype is torch.float32
        and norm_weight.is_contiguous()
    ):
        return "norm_weight is not a contiguous float32 tensor on x's device"
    if norm_weight.shape != (259,):
        return "norm_weight is not of shape (259,)"
    if not (
        type(norm_bias) in PLAIN
        and norm_bias.get_device() == x.get_device()
        and norm_bias.dtype is torch.float32
        and norm_bias.is_contiguous()
    ):
        return "norm_bias is not a contiguous float32 tensor on x's device"
    if norm_bias.shape != (259,):
        return "norm_bias is not of shape (259,)"
    if torch.is_grad_enabled(
        ) and (x.requires_grad
        or residual.requires_grad
        or norm_weight.requires_grad
        or norm_bias.requires_grad
    ):
        return "autograd needs the result: run under torch.no_grad() or torch.inference_mode()"
    if torch.is_autocast_enabled("cuda"):
        return "autocast is on: it would choose other dtypes"
    if not _capable(x.get_device()):
        return "the device is older than sm_80"
    return None


def supports(module, x, residual):
    """Whether the kernel computes what the module would, for these inputs, here and now."""
    return explain(module, x, residual) is None


_DEVICES = {}


def _capable(index):
    if index not in _DEVICES:
        _DEVICES[index] = torch.cuda.get_device_capability(index) >= (8, 0)
    return _DEVICES[index]


def forward(module, x, residual):
    """The module's result. Call it only where `supports` is true."""
    if torch.compiler.is_compiling():
        return _OP(x, residual, module.norm.weight, module.norm.bias)
    return _launch(x, residual, module.norm.weight, module.norm.bias)


def warm_up(module, x, residual):
    """Compiles for these inputs' device without launching: before a CUDA-graph capture, say."""
    _compiled(x.device.index, True)


def _empty(x, residual, norm_weight, norm_bias):
    y0 = torch.empty_like(x)
    y1 = torch.empty_like(x)
    return y0, y1


def _launch(x, residual, norm_weight, norm_bias):
    y0, y1 = _empty(x, residual, norm_weight, norm_bias)
    index = x.get_device()
    compiled = _compiled(index, not (x.data_ptr() % 16 or residual.data_ptr() % 16 or norm_weight.data_ptr() % 16 or norm_bias.data_ptr() % 16))
    if torch.cuda.current_device() == index:
        compiled(x, residual, norm_weight, norm_bias, y0, y1)
    else:
        with torch.cuda.device(index):
            compiled(x, residual, norm_weight, norm_bias, y0, y1)
    return (y0, y1)


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
    def residual_layer_norm_kernel(
        gResidual: cute.Tensor, gX: cute.Tensor, gNormWeight: cute.Tensor, gNormBias: cute.Tensor,
        gY0: cute.Tensor, gY1: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        rows = cute.size(gY0, mode=[0])
        lane = tidx % THREADS_PER_ROW
        at = bidx * ROWS_PER_BLOCK + tidx // THREADS_PER_ROW
        live = at < rows
        row = cutlass.min(at, rows - 1)  # threads past the last row redo it and store nothing
        smem = cutlass.memory.SmemAllocator()
        layout = cute.make_layout((2, ROWS_PER_BLOCK, WARPS_PER_ROW))
        sRow = smem.allocate_tensor(cutlass.Float32, layout, 4)
        residual = load(gResidual, row, lane)
        x = load(gX, row, lane)
        total = residual + x
        row_sum = reduce_row(keep(total, lane, 0.0), cute.ReductionOp.ADD, operator.add, 0.0, sRow, 0, tidx)
        difference = total - row_sum * 0.003861003861003861
        product = difference * difference
        row_sum_2 = reduce_row(keep(product, lane, 0.0), cute.ReductionOp.ADD, operator.add, 0.0, sRow, 1, tidx)
        norm_weight = load(gNormWeight, row, lane)
        norm_bias = load(gNormBias, row, lane)
        product_2 = difference * cute.math.rsqrt(row_sum_2 * 0.003861003861003861 + 1e-05)
        store(product_2 * norm_weight + norm_bias, gY0, row, lane, live)
        store(total, gY1, row, lane, live)

    @cute.jit
    def residual_layer_norm(
        mX: cute.Tensor, mResidual: cute.Tensor, mNormWeight: cute.Tensor, mNormBias: cute.Tensor,
        mY0: cute.Tensor, mY1: cute.Tensor, stream: CUstream,
    ):
        rows = cute.size(mY0) // 259
        gResidual = cute.make_tensor(mResidual.iterator, cute.make_layout((rows, 259), stride=(259, 1)))
        gX = cute.make_tensor(mX.iterator, cute.make_layout((rows, 259), stride=(259, 1)))
        gNormWeight = cute.make_tensor(mNormWeight.iterator, cute.make_layout((rows, 259), stride=(0, 1)))
        gNormBias = cute.make_tensor(mNormBias.iterator, cute.make_layout((rows, 259), stride=(0, 1)))
        gY0 = cute.make_tensor(mY0.iterator, cute.make_layout((rows, 259), stride=(259, 1)))
        gY1 = cute.make_tensor(mY1.iterator, cute.make_layout((rows, 259), stride=(259, 1)))
        grid = [cute.ceil_div(rows, ROWS_PER_BLOCK), 1, 1]
        residual_layer_norm_kernel(gResidual, gX, gNormWeight, gNormBias, gY0, gY1).launch(
            grid=grid, block=[THREADS_PER_ROW * ROWS_PER_BLOCK, 1, 1], stream=stream
        )

    return residual_layer_norm


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
        fake(cutlass.Float32, (cute.sym_int(), 259)),
        fake(cutlass.Float32, (cute.sym_int(), 259)),
        fake(cutlass.Float32, (259,)),
        fake(cutlass.Float32, (259,)),
        fake(cutlass.Float32, (cute.sym_int(), 259)),
        fake(cutlass.Float32, (cute.sym_int(), 259)),
        make_fake_stream(use_tvm_ffi_env_stream=True),
        options="--enable-tvm-ffi",
    )


# An op, so that torch.compile and export see one opaque node; eager calls skip the dispatcher.
_NAME = "residual_layer_norm_" + (__name__.replace(".", "_") if __name__.isascii() else __name__.encode().hex())
if "_LIBRARY" in globals():  # reloaded: the old definition goes first
    _LIBRARY._destroy()
_LIBRARY = torch.library.Library("cutesmith", "FRAGMENT")
_SCHEMA = "(Tensor x, Tensor residual, Tensor norm_weight, Tensor norm_bias) -> (Tensor, Tensor)"
_LIBRARY.define(_NAME + _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
_LIBRARY.impl(_NAME, _launch, "CUDA")


@torch.library.register_fake(f"cutesmith::{_NAME}", lib=_LIBRARY)
def _fake(x, residual, norm_weight, norm_bias):
    return _empty(x, residual, norm_weight, norm_bias)


_OP = getattr(torch.ops.cutesmith, _NAME).default
