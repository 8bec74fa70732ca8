"""One tile of a matrix product by each kind of warp-wide multiplication that the DSL has, as a candidate."""

from __future__ import annotations

from dataclasses import dataclass

_SOURCE = """
import torch

PLAIN = (torch.Tensor, torch.nn.Parameter)


def explain(module, a, b):
    return None


def supports(module, a, b):
    return True


def warm_up(module, a, b):
    pass


def forward(module, a, b):
    c = torch.empty((64, 64), dtype=torch.{result}, device=a.device)
    _compile()(a, b, c)
    return c


def _compile():
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
    from cutlass.cute.nvgpu import CopyUniversalOp, LoadCacheMode, cpasync, warp
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    kind, result = cutlass.{kind}, cutlass.{accumulated}
    vector = 128 // kind.width

    @cute.kernel
    def tile_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, mma: cute.TiledMma, fetch: cute.TiledCopy):
        thread, _, _ = cute.arch.thread_idx()
        memory = cutlass.memory.SmemAllocator()
        rows = cute.make_ordered_layout((64, 64), (1, 0))
        sA, sB = memory.allocate_tensor(kind, rows, 128), memory.allocate_tensor(kind, rows, 128)
        sC = memory.allocate_tensor(result, rows, 128)
        copy = fetch.get_slice(thread)
        cute.copy(fetch, copy.partition_S(mA), copy.partition_D(sA))
        cute.copy(fetch, copy.partition_S(mB), copy.partition_D(sB))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        part = mma.get_slice(thread)
        rA, rB = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))
        sum = mma.make_fragment_C(part.partition_C(sC))
        sum.fill(0.0)
        load = cute.make_copy_atom({load}, kind)
        load_a, load_b = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
        part_a, part_b = load_a.get_slice(thread), load_b.get_slice(thread)
        cute.copy(load_a, part_a.partition_S(sA), part_a.retile(rA))
        cute.copy(load_b, part_b.partition_S(sB), part_b.retile(rB))
        cute.gemm(mma, sum, rA, rB, sum)
        store = cute.make_tiled_copy_C(cute.make_copy_atom({store}, result), mma)
        part_c = store.get_slice(thread)
        cute.copy(store, part_c.retile(sum), part_c.partition_D(sC))
        cute.arch.sync_threads()
        for step in cutlass.range(32):
            place = step * 128 + thread
            mC[place // 64, place % 64] = sC[place // 64, place % 64]

    @cute.jit
    def launch(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: CUstream):
        mma = cute.make_tiled_mma({operation}, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, {depth}))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(LoadCacheMode.GLOBAL), kind, num_bits_per_copy=128)
        threads = cute.make_ordered_layout((128 * vector // 64, 64 // vector), (1, 0))
        fetch = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, vector)))
        tile_kernel(mA, mB, mC, mma, fetch).launch(grid=(1, 1, 1), block=(128, 1, 1), stream=stream)

    a, b, c = (
        make_fake_compact_tensor(each, (64, 64), stride_order=(1, 0), assumed_align=16) for each in (kind, kind, result)
    )
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(launch, a, b, c, stream, options="--enable-tvm-ffi")
"""
_COPY = "CopyUniversalOp()"


@dataclass(frozen=True)
class Variant:
    """`kind` and `accumulated`: the DSL's names of types. `error`: the largest that the arithmetic explains."""

    kind: str
    depth: int
    arch: str
    error: float
    accumulated: str = "Float32"
    load: str = "warp.LdMatrix8x8x16bOp(False, 4)"
    store: str = _COPY

    @property
    def operation(self) -> str:
        shape = f"(16, 8, {self.depth})"
        if self.kind == "TFloat32":
            return f"warp.MmaTF32Op({shape})"
        name = "MmaFP8Op" if self.kind.startswith("Float8") else "MmaF16BF16Op"
        return f"warp.{name}(cutlass.{self.kind}, cutlass.{self.accumulated}, {shape})"

    @property
    def source(self) -> str:
        names = {"load": self.load, "store": self.store, "kind": self.kind, "accumulated": self.accumulated}
        text = _SOURCE.replace("{operation}", self.operation).replace("{depth}", str(self.depth))
        for name, value in (*names.items(), ("result", self.accumulated.lower())):
            text = text.replace(f"{{{name}}}", value)
        return text


_BYTES = "warp.LdMatrix8x16x8bOp(False, 4)"
_STORE = "warp.StMatrix8x8x16bOp(False, 4)"
VARIANTS = (
    Variant("Float16", 8, "sm_80", 1e-4, load="warp.LdMatrix8x8x16bOp(False, 2)"),
    Variant("Float16", 16, "sm_90a", 0.05, accumulated="Float16", store=_STORE),
    Variant("BFloat16", 16, "sm_90a", 1e-4),
    Variant("TFloat32", 8, "sm_80", 0.1),
    Variant("TFloat32", 4, "sm_90a", 0.1, load=_COPY),
    Variant("Float8E4M3FN", 32, "sm_89", 0.05, load=_BYTES),
    Variant("Float8E5M2", 32, "sm_90a", 0.05, accumulated="Float16", load=_BYTES, store=_STORE),
    Variant("Float8E4M3FN", 16, "sm_90a", 1e-4, load=_COPY),
)
