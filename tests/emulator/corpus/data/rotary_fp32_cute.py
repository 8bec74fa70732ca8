"""RotaryEmbedding in one pass over memory: every tensor is read or written once.

For RotaryEmbedding in rotary.py; written by CuteSmith. Fuses: mul, slice, neg, cat, add.
Inference only: where autograd needs the result, or `explain` names a reason, the original code runs.

Evidence:
- nothing was run on this file yet
"""

import functools
import importlib.util
import os

import torch

THREADS = 256  # threads per block
VECTOR = 1  # elements per access, 16 bytes where the tensors are aligned
STEPS = 1  # accesses per thread and tensor, all loads issued before the first use

# Read once, at import: CUTESMITH_DISABLE=1 keeps the original code everywhere.
DISABLED = os.environ.get("CUTESMITH_DISABLE") == "1"
HAS_DSL = all(importlib.util.find_spec(name) is not None for name in ("cutlass", "tvm_ffi"))
PLAIN = (torch.Tensor, torch.nn.Parameter)  # subclasses may hold no memory that a kernel can read


def explain(module, q, k, cos, sin):
    """The first reason why the kernel cannot stand in for the module here, or None."""
    if DISABLED:
        return "CUTESMITH_DISABLE=1 is set"
    if not HAS_DSL:
        return "nvidia-cutlass-dsl or apache-tvm-ffi is not installed"
    if not (type(q) in PLAIN and q.is_cuda and q.dtype is torch.float32 and q.is_contiguous()):
        return "q is not a contiguous float32 CUDA tensor"
    if q.shape != (1, 3, 13, 34):
        return "q is not of shape (1, 3, 13, 34)"
    if not (
        type(k) in PLAIN
        and k.get_device() == q.get_device()
        and k.dtype is torch.float32
        and k.is_contiguous()
    ):
        return "k is not a contiguous float32 tensor on q's device"
    if k.shape != (1, 3, 13, 34):
        return "k is not of shape (1, 3, 13, 34)"
    if not (
        type(cos) in PLAIN
        and cos.get_device() == q.get_device()
        and cos.dtype is torch.float32
        and cos.is_contiguous()
    ):
        return "cos is not a contiguous float32 tensor on q's device"
    if cos.shape != (13, 34):
        return "cos is not of shape (13, 34)"
    if not (
        type(sin) in PLAIN
        and sin.get_device() == q.get_device()
        and sin.dtype is torch.float32
        and sin.is_contiguous()
    ):
        return "sin is not a contiguous float32 tensor on q's device"
    if sin.shape != (13, 34):
        return "sin is not of shape (13, 34)"
    if torch.is_grad_enabled(
        ) and (q.requires_grad
        or k.requires_grad
        or cos.requires_grad
        or sin.requires_grad
    ):
        return "autograd needs the result: run under torch.no_grad() or torch.inference_mode()"
    if torch.is_autocast_enabled("cuda"):
        return "autocast is on: it would choose other dtypes"
    if not _capable(q.get_device()):
        return "the device is older than sm_80"
    return None


def supports(module, q, k, cos, sin):
    """Whether the kernel computes what the module would, for these inputs, here and now."""
    return explain(module, q, k, cos, sin) is None


_DEVICES = {}


def _capable(index):
    if index not in _DEVICES:
        _DEVICES[index] = torch.cuda.get_device_capability(index) >= (8, 0)
    return _DEVICES[index]


def forward(module, q, k, cos, sin):
    """The module's result. Call it only where `supports` is true."""
    if torch.compiler.is_compiling():
        return _OP(q, k, cos, sin)
    return _launch(q, k, cos, sin)


def warm_up(module, q, k, cos, sin):
    """Compiles for these inputs' device without launching: before a CUDA-graph capture, say."""
    _compiled(q.device.index, True)


def _empty(q, k, cos, sin):
    y0 = torch.empty_like(q)
    y1 = torch.empty_like(q)
    return y0, y1


def _launch(q, k, cos, sin):
    y0, y1 = _empty(q, k, cos, sin)
    index = q.get_device()
    compiled = _compiled(index, not (q.data_ptr() % 16 or k.data_ptr() % 16 or cos.data_ptr() % 16 or sin.data_ptr() % 16))
    if torch.cuda.current_device() == index:
        compiled(q, k, cos, sin, y0, y1)
    else:
        with torch.cuda.device(index):
            compiled(q, k, cos, sin, y0, y1)
    return (y0, y1)


@functools.cache
def _program(vector):
    """The kernel and its host function, for accesses of `vector` elements. Imports the DSL (2-3 s)."""
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream

    def compute(q_0, cos_0, q_1, sin_0, k_0, k_1, cos_1, sin_1):
        """One result element per operand element, in fp32."""
        return (
            q_0 * cos_0 + -q_1 * sin_0, k_0 * cos_0 + -k_1 * sin_0, q_1 * cos_1 + q_0 * sin_1,
            k_1 * cos_1 + k_0 * sin_1,
        )

    def load(g, chunk, width, steps):
        """This thread's elements of `g` in fp32: `steps` accesses of `width`, a block apart."""
        tiles = cute.zipped_divide(g, (width,))
        fragment = cute.make_rmem_tensor((width, steps), g.element_type)
        for step in range(steps):
            cute.autovec_copy(tiles[None, chunk + step * THREADS], fragment[None, step])
        return fragment.load().to(cutlass.Float32)

    def store(result, g, chunk, width, steps):
        tiles = cute.zipped_divide(g, (width,))
        fragment = cute.make_rmem_tensor((width, steps), g.element_type)
        fragment.store(result.to(g.element_type))
        for step in range(steps):
            cute.autovec_copy(fragment[None, step], tiles[None, chunk + step * THREADS])

    def process(gQ0, gCos0, gQ1, gSin0, gK0, gK1, gCos1, gSin1, gY00, gY10, gY01, gY11, chunk, width, steps):
        y0_0, y1_0, y0_1, y1_1 = compute(
            load(gQ0, chunk, width, steps), load(gCos0, chunk, width, steps), load(gQ1, chunk, width, steps),
            load(gSin0, chunk, width, steps), load(gK0, chunk, width, steps), load(gK1, chunk, width, steps),
            load(gCos1, chunk, width, steps), load(gSin1, chunk, width, steps),
        )
        store(y0_0, gY00, chunk, width, steps)
        store(y1_0, gY10, chunk, width, steps)
        store(y0_1, gY01, chunk, width, steps)
        store(y1_1, gY11, chunk, width, steps)

    @cute.kernel
    def rotary_embedding_kernel(
        gQ0: cute.Tensor, gCos0: cute.Tensor, gQ1: cute.Tensor, gSin0: cute.Tensor, gK0: cute.Tensor,
        gK1: cute.Tensor, gCos1: cute.Tensor, gSin1: cute.Tensor, gY00: cute.Tensor, gY10: cute.Tensor,
        gY01: cute.Tensor, gY11: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        n = cute.size(gY00)
        tile = THREADS * STEPS * vector
        if n - bidx * tile >= tile:
            process(
                gQ0, gCos0, gQ1, gSin0, gK0, gK1, gCos1, gSin1, gY00, gY10, gY01, gY11,
                bidx * THREADS * STEPS + tidx, vector, STEPS,
            )
        else:
            for i in cutlass.range(bidx * tile + tidx, n, THREADS):
                process(gQ0, gCos0, gQ1, gSin0, gK0, gK1, gCos1, gSin1, gY00, gY10, gY01, gY11, i, 1, 1)

    @cute.jit
    def rotary_embedding(
        mQ: cute.Tensor, mK: cute.Tensor, mCos: cute.Tensor, mSin: cute.Tensor, mY0: cute.Tensor,
        mY1: cute.Tensor, stream: CUstream,
    ):
        n = cute.size(mY0) // 2
        layout_0 = cute.make_layout(((17, n // 17),), stride=((1, 34),))
        layout_1 = cute.make_layout(((17, 13, n // 221),), stride=((1, 34, 0),))
        gQ0 = cute.make_tensor(mQ.iterator, layout_0)
        gCos0 = cute.make_tensor(mCos.iterator, layout_1)
        gQ1 = cute.make_tensor(mQ.iterator + 17, layout_0)
        gSin0 = cute.make_tensor(mSin.iterator, layout_1)
        gK0 = cute.make_tensor(mK.iterator, layout_0)
        gK1 = cute.make_tensor(mK.iterator + 17, layout_0)
        gCos1 = cute.make_tensor(mCos.iterator + 17, layout_1)
        gSin1 = cute.make_tensor(mSin.iterator + 17, layout_1)
        gY00 = cute.make_tensor(mY0.iterator, layout_0)
        gY10 = cute.make_tensor(mY1.iterator, layout_0)
        gY01 = cute.make_tensor(mY0.iterator + 17, layout_0)
        gY11 = cute.make_tensor(mY1.iterator + 17, layout_0)
        grid = [cute.ceil_div(n, THREADS * STEPS * vector), 1, 1]
        rotary_embedding_kernel(gQ0, gCos0, gQ1, gSin0, gK0, gK1, gCos1, gSin1, gY00, gY10, gY01, gY11).launch(
            grid=grid, block=[THREADS, 1, 1], stream=stream
        )

    return rotary_embedding


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
        fake(cutlass.Float32, (1, 3, 13, 34)),
        fake(cutlass.Float32, (1, 3, 13, 34)),
        fake(cutlass.Float32, (13, 34)),
        fake(cutlass.Float32, (13, 34)),
        fake(cutlass.Float32, (1, 3, 13, 34)),
        fake(cutlass.Float32, (1, 3, 13, 34)),
        make_fake_stream(use_tvm_ffi_env_stream=True),
        options="--enable-tvm-ffi",
    )


# An op, so that torch.compile and export see one opaque node; eager calls skip the dispatcher.
_NAME = "rotary_embedding_" + (__name__.replace(".", "_") if __name__.isascii() else __name__.encode().hex())
if "_LIBRARY" in globals():  # reloaded: the old definition goes first
    _LIBRARY._destroy()
_LIBRARY = torch.library.Library("cutesmith", "FRAGMENT")
_SCHEMA = "(Tensor q, Tensor k, Tensor cos, Tensor sin) -> (Tensor, Tensor)"
_LIBRARY.define(_NAME + _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
_LIBRARY.impl(_NAME, _launch, "CUDA")


@torch.library.register_fake(f"cutesmith::{_NAME}", lib=_LIBRARY)
def _fake(q, k, cos, sin):
    return _empty(q, k, cos, sin)


_OP = getattr(torch.ops.cutesmith, _NAME).default
