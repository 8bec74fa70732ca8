"""An fp32 product on tensor cores, a warp a tile, as a candidate: in a narrower type, or split into parts of one."""

from __future__ import annotations

from dataclasses import dataclass

TASK = """
import torch
from torch import nn


class Product(nn.Module):
    def forward(self, a, b):
        return a @ b.mT


def wide(shape):
    return torch.exp2(40 * torch.rand(shape) - 20) * torch.randn(shape).sign()


def get_inputs():
    return [{draw}((16, {depth})), {draw}((16, {depth}))]
"""
QUALNAME = "Product"
DRAWS = {"normal": "torch.randn", "uniform": "torch.rand", "wide range": "wide"}

_CANDIDATE = """
import functools

import torch


def explain(module, a, b):
    for x in (a, b):
        if not x.is_cuda or x.dtype != torch.float32 or tuple(x.shape) != (16, {depth}) or not x.is_contiguous():
            return "a and b are not contiguous float32 CUDA matrices of 16 x {depth}"
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return "gradients are needed"
    return None


def supports(module, a, b):
    return explain(module, a, b) is None


def warm_up(module, a, b):
    _launcher()


def forward(module, a, b):
    c = torch.empty((16, 16), dtype=torch.float32, device=a.device)
    _launcher()(a, b, c)
    return c


@functools.cache
def _launcher():
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
    from cutlass.cute.nvgpu import warp
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    kind, parts, terms, factor = cutlass.{kind}, {parts}, {terms}, {factor}

    @cute.jit
    def split(gX: cute.Tensor, step: cutlass.Int32, parted: cute.Tensor):
        for element in cutlass.range_constexpr(cute.size(gX, mode=[0])):
            rest = gX[element, 0, 0, step]
            for part in cutlass.range_constexpr(parts):
                narrow = rest.to(kind)
                parted[element, 0, 0, part] = narrow
                rest = (rest - narrow.to(cutlass.Float32)) * factor

    @cute.kernel
    def product_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, mma: cute.TiledMma):
        lane, _, _ = cute.arch.thread_idx()
        column, _, _ = cute.arch.block_idx()
        part = mma.get_slice(lane)
        tA = part.partition_A(cute.local_tile(mA, (16, {k}), (0, None)))
        tB = part.partition_B(cute.local_tile(mB, (8, {k}), (column, None)))
        tC = part.partition_C(cute.local_tile(mC, (16, 8), (0, column)))
        rA = cute.make_rmem_tensor((cute.size(tA, mode=[0]), 1, 1, parts), kind)
        rB = cute.make_rmem_tensor((cute.size(tB, mode=[0]), 1, 1, parts), kind)
        total, chunk, rest = mma.make_fragment_C(tC), mma.make_fragment_C(tC), mma.make_fragment_C(tC)
        total.fill(0.0)
        rest.fill(0.0)
        for first in cutlass.range({depth} // {chunk}):
            chunk.fill(0.0)
            for number in cutlass.range({chunk} // {k}):
                step = first * ({chunk} // {k}) + number
                split(tA, step, rA)
                split(tB, step, rB)
                cute.gemm(mma, chunk, rA[None, None, None, 0], rB[None, None, None, 0], chunk)
                for i, j in terms:
                    cute.gemm(mma, rest, rA[None, None, None, i], rB[None, None, None, j], rest)
            for element in cutlass.range_constexpr(cute.size(total)):
                total[element] += chunk[element]
        for element in cutlass.range_constexpr(cute.size(total)):
            tC[element] = total[element] + rest[element] / factor

    @cute.jit
    def launch(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: CUstream):
        mma = cute.make_tiled_mma({operation}, cute.make_layout((1, 1, 1)))
        product_kernel(mA, mB, mC, mma).launch(grid=(2, 1, 1), block=(32, 1, 1), stream=stream)

    a, b, c = (
        make_fake_compact_tensor(cutlass.Float32, shape, stride_order=(1, 0), assumed_align=16)
        for shape in ((16, {depth}), (16, {depth}), (16, 16))
    )
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(launch, a, b, c, stream, options="--enable-tvm-ffi")
"""


@dataclass(frozen=True)
class Arithmetic:
    """`terms`: (part of a, part of b) whose products are added to that of the first parts. `chunk`: of K, after which
    the tensor core's sum is added to one in fp32; None: never."""

    name: str
    kind: str
    parts: int = 1
    terms: tuple[tuple[int, int], ...] = ()
    factor: float = 1.0
    chunk: int | None = None

    def candidate(self, depth: int) -> str:
        k = 8 if self.kind == "TFloat32" else 16
        operation = (
            "warp.MmaTF32Op((16, 8, 8))"
            if self.kind == "TFloat32"
            else f"warp.MmaF16BF16Op(cutlass.{self.kind}, cutlass.Float32, (16, 8, 16))"
        )
        words = {"kind": self.kind, "parts": self.parts, "terms": self.terms, "factor": self.factor, "k": k}
        text = _CANDIDATE.replace("{operation}", operation)
        for name, value in {**words, "depth": depth, "chunk": self.chunk or depth}.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text


_FP16 = ((0, 1), (1, 0))
TF32, FP16, BF16 = (Arithmetic(name, name) for name in ("TFloat32", "Float16", "BFloat16"))
FP16_SPLIT = Arithmetic("3-term fp16 split", "Float16", 2, _FP16, 2048.0, 128)
FP16_UNPROMOTED = Arithmetic("3-term fp16 split, not promoted", "Float16", 2, _FP16, 2048.0)
FP16_HALF_SPLIT = Arithmetic("2-term fp16 split", "Float16", 2, _FP16[:1], 2048.0, 128)
BF16_SPLIT = Arithmetic("6-term bf16 split", "BFloat16", 3, ((0, 1), (1, 0), (1, 1), (0, 2), (2, 0)), 1.0, 128)


def task(draw: str, depth: int) -> str:
    return TASK.format(draw=draw, depth=depth)
