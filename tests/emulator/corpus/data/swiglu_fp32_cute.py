"""SwiGLU in one pass over memory: every tensor is read or written once.

For SwiGLU in swiglu.py; written by CuteSmith. Fuses: slice, silu, mul.
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


def explain(module, gate_up):
    """The first reason why the kernel cannot stand in for the module here, or None."""
    if DISABLED:
        return "CUTESMITH_DISABLE=1 is set"
    if not HAS_DSL:
        return "nvidia-cutlass-dsl or apache-tvm-ffi is not installed"
    if not (
        type(gate_up) in PLAIN
        and gate_up.is_cuda
        and gate_up.dtype is torch.float32
        and gate_up.is_contiguous()
    ):
        return "gate_up is not a contiguous float32 CUDA tensor"
    if gate_up.dim() != 2 or gate_up.shape[1] != 518:
        return "gate_up is not (*, 518)"
    if not 0 < gate_up.numel() < 2**31:
        return "gate_up has no elements, or 2**31 or more"
    if torch.is_grad_enabled() and gate_up.requires_grad:
        return "autograd needs the result: run under torch.no_grad() or torch.inference_mode()"
    if torch.is_autocast_enabled("cuda"):
        return "autocast is on: it would choose other dtypes"
    if not _capable(gate_up.get_device()):
        return "the device is older than sm_80"
    return None


def supports(module, gate_up):
    """Whether the kernel computes what the module would, for these inputs, here and now."""
    return explain(module, gate_up) is None


_DEVICES = {}


def _capable(index):
    if index not in _DEVICES:
        _DEVICES[index] = torch.cuda.get_device_capability(index) >= (8, 0)
    return _DEVICES[index]


def forward(module, gate_up):
    """The module's result. Call it only where `supports` is true."""
    if torch.compiler.is_compiling():
        return _OP(gate_up)
    return _launch(gate_up)


def warm_up(module, gate_up):
    """Compiles for these inputs' device without launching: before a CUDA-graph capture, say."""
    _compiled(gate_up.device.index, True)


def _empty(gate_up):
    return gate_up.new_empty((gate_up.shape[0], 259))


def _launch(gate_up):
    y = _empty(gate_up)
    index = gate_up.get_device()
    compiled = _compiled(index, not (gate_up.data_ptr() % 16))
    if torch.cuda.current_device() == index:
        compiled(gate_up, y)
    else:
        with torch.cuda.device(index):
            compiled(gate_up, y)
    return y


@functools.cache
def _program(vector):
    """The kernel and its host function, for accesses of `vector` elements. Imports the DSL (2-3 s)."""
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream

    def compute(gate_up_0, gate_up_1):
        """One result element per operand element, in fp32."""
        return gate_up_0 / (1.0 + cute.math.exp(-gate_up_0)) * gate_up_1

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

    def process(gGateUp0, gGateUp1, gY, chunk, width, steps):
        y = compute(load(gGateUp0, chunk, width, steps), load(gGateUp1, chunk, width, steps))
        store(y, gY, chunk, width, steps)

    @cute.kernel
    def swi_glu_kernel(gGateUp0: cute.Tensor, gGateUp1: cute.Tensor, gY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        n = cute.size(gY)
        tile = THREADS * STEPS * vector
        if n - bidx * tile >= tile:
            process(gGateUp0, gGateUp1, gY, bidx * THREADS * STEPS + tidx, vector, STEPS)
        else:
            for i in cutlass.range(bidx * tile + tidx, n, THREADS):
                process(gGateUp0, gGateUp1, gY, i, 1, 1)

    @cute.jit
    def swi_glu(mGateUp: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        n = cute.size(mY)
        layout_0 = cute.make_layout(((259, n // 259),), stride=((1, 518),))
        layout_1 = cute.make_layout(n)
        gGateUp0 = cute.make_tensor(mGateUp.iterator, layout_0)
        gGateUp1 = cute.make_tensor(mGateUp.iterator + 259, layout_0)
        gY = cute.make_tensor(mY.iterator, layout_1)
        grid = [cute.ceil_div(n, THREADS * STEPS * vector), 1, 1]
        swi_glu_kernel(gGateUp0, gGateUp1, gY).launch(
            grid=grid, block=[THREADS, 1, 1], stream=stream
        )

    return swi_glu


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
        fake(cutlass.Float32, (cute.sym_int(), 518)),
        fake(cutlass.Float32, (cute.sym_int(), 259)),
        make_fake_stream(use_tvm_ffi_env_stream=True),
        options="--enable-tvm-ffi",
    )


# An op, so that torch.compile and export see one opaque node; eager calls skip the dispatcher.
_NAME = "swi_glu_" + (__name__.replace(".", "_") if __name__.isascii() else __name__.encode().hex())
if "_LIBRARY" in globals():  # reloaded: the old definition goes first
    _LIBRARY._destroy()
_LIBRARY = torch.library.Library("cutesmith", "FRAGMENT")
_SCHEMA = "(Tensor gate_up) -> Tensor"
_LIBRARY.define(_NAME + _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
_LIBRARY.impl(_NAME, _launch, "CUDA")


@torch.library.register_fake(f"cutesmith::{_NAME}", lib=_LIBRARY)
def _fake(gate_up):
    return _empty(gate_up)


_OP = getattr(torch.ops.cutesmith, _NAME).default
