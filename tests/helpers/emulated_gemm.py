"""A CuTe GEMM for tensor cores of sm_80 on, as a task and a candidate: cp.async in stages, ldmatrix, mma.sync.

C = A · Bᵀ in float32 of float16 or bfloat16 A (M, K) and B (N, K). `gemm` gives it with planted faults: a line of the
source and what stands there instead.
"""

from __future__ import annotations

from dataclasses import dataclass

TASK = """
import torch
from torch import nn


class Scores(nn.Module):
    def forward(self, a, b):
        return a.float() @ b.float().T


def get_inputs():
    return [torch.randn(M, K).to(DTYPE), torch.randn(N, K).to(DTYPE)]
"""

_SOURCE = '''
import torch

TILE_M, TILE_N, TILE_K, STAGES = 64, 64, 32, 3
PLAIN = (torch.Tensor, torch.nn.Parameter)
HALVES = (torch.float16, torch.bfloat16)


def explain(module, a, b):
    for x in (a, b):
        if type(x) not in PLAIN or not x.is_cuda or x.dtype not in HALVES or x.dim() != 2 or not x.is_contiguous():
            return "a and b are not contiguous CUDA matrices of a half type"
        if x.data_ptr() % 16 or x.shape[1] % 32:
            return "rows are no multiple of 64 bytes"
    if a.dtype != b.dtype or a.shape[1] != b.shape[1] or not a.numel() or not b.numel():
        return "a and b do not fit together, or are empty"
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return "gradients are needed"
    return None


def supports(module, a, b):
    return explain(module, a, b) is None


def warm_up(module, a, b):
    _compiled(a.dtype)


def forward(module, a, b):
    c = torch.empty((a.shape[0], b.shape[0]), dtype=torch.float32, device=a.device)
    _compiled(a.dtype)(a, b, c)
    return c


_COMPILED = {}


def _compiled(dtype):
    if dtype not in _COMPILED:
        _COMPILED[dtype] = _compile(dtype)
    return _COMPILED[dtype]


def _compile(dtype):
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
    from cutlass.cute.nvgpu import LoadCacheMode, cpasync, warp
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    half = cutlass.Float16 if dtype == torch.float16 else cutlass.BFloat16

    @cute.jit
    def predicates(coordinates: cute.Tensor, extent: cutlass.Int32):
        """Which rows of a thread's copies lie inside the matrix."""
        shape = (1, coordinates.shape[1], coordinates.shape[2])
        inside = cute.make_rmem_tensor(cute.make_layout(shape), cutlass.Boolean)
        for row in cutlass.range_constexpr(shape[1]):
            for column in cutlass.range_constexpr(shape[2]):
                inside[0, row, column] = coordinates[0, row, column, 0][0] < extent
        return inside

    @cute.kernel
    def gemm_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, mma: cute.TiledMma, fetch: cute.TiledCopy):
        thread, _, _ = cute.arch.thread_idx()
        block_m, block_n, _ = cute.arch.block_idx()
        gA = cute.local_tile(mA, (TILE_M, TILE_K), (block_m, None))
        gB = cute.local_tile(mB, (TILE_N, TILE_K), (block_n, None))
        gC = cute.local_tile(mC, (TILE_M, TILE_N), (block_m, block_n))
        cA = cute.local_tile(cute.make_identity_tensor(mA.shape), (TILE_M, TILE_K), (block_m, None))
        cB = cute.local_tile(cute.make_identity_tensor(mB.shape), (TILE_N, TILE_K), (block_n, None))
        cC = cute.local_tile(cute.make_identity_tensor(mC.shape), (TILE_M, TILE_N), (block_m, block_n))

        memory = cutlass.memory.SmemAllocator()
        swizzle = cute.make_swizzle(2, 4, 3)
        sA = memory.allocate_tensor(half, cute.make_ordered_layout((TILE_M, TILE_K, STAGES), (1, 0, 2)), 128, swizzle)
        sB = memory.allocate_tensor(half, cute.make_ordered_layout((TILE_N, TILE_K, STAGES), (1, 0, 2)), 128, swizzle)
        fromA, fromB = sA, sB

        copy = fetch.get_slice(thread)
        tAgA, tAsA, pA = copy.partition_S(gA), copy.partition_D(sA), predicates(copy.partition_S(cA), mA.shape[0])
        tBgB, tBsB, pB = copy.partition_S(gB), copy.partition_D(sB), predicates(copy.partition_S(cB), mB.shape[0])
        tiles = cute.size(gA, mode=[2])
        for stage in cutlass.range_constexpr(STAGES - 1):
            if stage < tiles:
                cute.copy(fetch, tAgA[None, None, None, stage], tAsA[None, None, None, stage], pred=pA)
                cute.copy(fetch, tBgB[None, None, None, stage], tBsB[None, None, None, stage], pred=pB)
            cute.arch.cp_async_commit_group()

        part = mma.get_slice(thread)
        tCgC, tCcC = part.partition_C(gC), part.partition_C(cC)
        sum = mma.make_fragment_C(tCgC)
        sum.fill(0.0)
        rA = mma.make_fragment_A(part.partition_A(sA)[None, None, None, 0])
        rB = mma.make_fragment_B(part.partition_B(sB)[None, None, None, 0])
        load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), half)
        load_a, load_b = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
        part_a, part_b = load_a.get_slice(thread), load_b.get_slice(thread)
        tAsR, tArR = part_a.partition_S(fromA), part_a.retile(rA)
        tBsR, tBrR = part_b.partition_S(fromB), part_b.retile(rB)

        for tile in cutlass.range(tiles):
            cute.arch.cp_async_wait_group(STAGES - 2)
            cute.arch.sync_threads()
            following = tile + STAGES - 1
            stage = tile % STAGES
            if following < tiles:
                target = following % STAGES
                cute.copy(fetch, tAgA[None, None, None, following], tAsA[None, None, None, target], pred=pA)
                cute.copy(fetch, tBgB[None, None, None, following], tBsB[None, None, None, target], pred=pB)
            cute.arch.cp_async_commit_group()
            for k in cutlass.range_constexpr(TILE_K // 16):
                cute.copy(load_a, tAsR[None, None, k, stage], tArR[None, None, k])
                cute.copy(load_b, tBsR[None, None, k, stage], tBrR[None, None, k])
                cute.gemm(mma, sum, rA[None, None, k], rB[None, None, k], sum)

        for element in cutlass.range_constexpr(cute.size(sum)):
            if cute.elem_less(tCcC[element], mC.shape):
                tCgC[element] = sum[element]

    @cute.jit
    def launch(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: CUstream):
        operation = warp.MmaF16BF16Op(half, cutlass.Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
        async_copy = cute.make_copy_atom(cpasync.CopyG2SOp(LoadCacheMode.GLOBAL), half, num_bits_per_copy=128)
        threads, values = cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8))
        fetch = cute.make_tiled_copy_tv(async_copy, threads, values)
        grid = (cute.ceil_div(mC.shape[0], TILE_M), cute.ceil_div(mC.shape[1], TILE_N), 1)
        gemm_kernel(mA, mB, mC, mma, fetch).launch(grid=grid, block=(128, 1, 1), stream=stream)

    m, n, k = cute.sym_int(), cute.sym_int(), cute.sym_int(divisibility=32)
    a = make_fake_compact_tensor(half, (m, k), stride_order=(1, 0), assumed_align=16)
    b = make_fake_compact_tensor(half, (n, k), stride_order=(1, 0), assumed_align=16)
    c = make_fake_compact_tensor(cutlass.Float32, (m, n), stride_order=(1, 0), assumed_align=4)
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(launch, a, b, c, stream, options="--enable-tvm-ffi")
'''


@dataclass(frozen=True)
class PlantedGemm:
    """`was` and `instead`: lines of the source. `here`: words of the line on which the fault has to be found."""

    name: str
    was: str
    instead: str
    kind: str
    here: str

    @property
    def source(self) -> str:
        assert _SOURCE.count(self.was) == 1, self.was
        return _SOURCE.replace(self.was, self.instead)

    @property
    def line(self) -> int:
        lines = [number for number, line in enumerate(self.source.split("\n"), 1) if self.here in line]
        assert len(lines) == 1, lines
        return lines[0]


def gemm() -> str:
    return _SOURCE


def task(m: int, n: int, k: int, dtype: str = "torch.float16") -> str:
    return TASK.replace("M, K", f"{m}, {k}").replace("N, K", f"{n}, {k}").replace("DTYPE", dtype)


_WAIT = "            cute.arch.cp_async_wait_group(STAGES - 2)\n"
_BARRIER = "            cute.arch.sync_threads()\n"
_READ = "cute.copy(load_a, "

# Of `wrong-values` the line is the one that stores them: the kernel runs, and its result is compared.
GEMM_FAULTS = (
    PlantedGemm("missing cp.async wait", _WAIT, "", "race", _READ),
    PlantedGemm("waits for one group too few", _WAIT, _WAIT.replace("- 2", "- 1"), "race", _READ),
    PlantedGemm("missing barrier after cp.async", _WAIT + _BARRIER, _WAIT, "race", _READ),
    PlantedGemm("barrier before the wait", _WAIT + _BARRIER, _BARRIER + _WAIT, "race", _READ),
    PlantedGemm(
        "the next stage over the one that is read", "target = following % STAGES", "target = stage", "race", _READ
    ),
    PlantedGemm("a stale stage", "stage = tile % STAGES", "stage = (tile // 2) % STAGES", "race", _READ),
    PlantedGemm(
        "wrong swizzle in ldmatrix",
        "fromA, fromB = sA, sB",
        "other = cute.recast_ptr(sA.iterator, cute.make_swizzle(1, 4, 3), half)\n"
        "        fromA, fromB = cute.make_tensor(other, sA.layout), sB",
        "wrong-values",
        "tCgC[element] = sum[element]",
    ),
    PlantedGemm(
        "dropped predicate of a copy",
        "tAgA[None, None, None, stage], tAsA[None, None, None, stage], pred=pA)",
        "tAgA[None, None, None, stage], tAsA[None, None, None, stage])  # HERE",
        "out-of-bounds",
        "# HERE",
    ),
    PlantedGemm(
        "dropped predicate of the result",
        "            if cute.elem_less(tCcC[element], mC.shape):\n                tCgC[element] = sum[element]",
        "            tCgC[element] = sum[element]",
        "out-of-bounds",
        "tCgC[element] = sum[element]",
    ),
)
