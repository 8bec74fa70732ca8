"""A small matrix product as Ampere does it: cp.async in two stages, ldmatrix, mma.sync. C = A (M, K) · B (N, K)ᵀ."""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass.cute.nvgpu import cpasync, warp

_STAGES = 2


class Gemm:
    """Blocks of 128 threads, tiles of 64 × 64 × 64; extents are multiples of them."""

    def __init__(self, dtype):
        self.dtype = dtype

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: CUstream):
        atom = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
        smem_layout = cute.tile_to_shape(atom, (64, 64, _STAGES), (0, 1, 2))
        copy_atom = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cute.nvgpu.LoadCacheMode.GLOBAL), self.dtype, num_bits_per_copy=128
        )
        load = cute.make_tiled_copy_tv(
            copy_atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8), stride=(8, 1))
        )
        op = warp.MmaF16BF16Op(self.dtype, cutlass.Float32, (16, 8, 16))
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
        grid = [cute.ceil_div(mC.shape[0], 64), cute.ceil_div(mC.shape[1], 64), 1]
        self.kernel(mA, mB, mC, load, tiled_mma, smem_layout).launch(grid=grid, block=[128, 1, 1], stream=stream)

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        load: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
        smem_layout: cute.ComposedLayout,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        smem = cutlass.utils.SmemAllocator()
        sA = smem.allocate_tensor(self.dtype, smem_layout, 128)
        sB = smem.allocate_tensor(self.dtype, smem_layout, 128)
        gA = cute.local_tile(mA, (64, 64), (bidx, None))
        gB = cute.local_tile(mB, (64, 64), (bidy, None))
        gC = cute.local_tile(mC, (64, 64), (bidx, bidy))
        thr_load = load.get_slice(tidx)
        tAgA, tAsA = thr_load.partition_S(gA), thr_load.partition_D(sA)
        tBgB, tBsB = thr_load.partition_S(gB), thr_load.partition_D(sB)

        thr_mma = tiled_mma.get_slice(tidx)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA[None, None, 0]))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB[None, None, 0]))
        tCgC = thr_mma.partition_C(gC)
        acc = tiled_mma.make_fragment_C(tCgC)
        acc.fill(0.0)
        matrices = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), self.dtype)
        read_a, read_b = cute.make_tiled_copy_A(matrices, tiled_mma), cute.make_tiled_copy_B(matrices, tiled_mma)
        thr_a, thr_b = read_a.get_slice(tidx), read_b.get_slice(tidx)
        rA, rB = thr_a.retile(tCrA), thr_b.retile(tCrB)
        tRsA, tRsB = thr_a.partition_S(sA), thr_b.partition_S(sB)

        steps = cute.size(gA, mode=[2])
        cute.copy(load, tAgA[None, None, None, 0], tAsA[None, None, None, 0])
        cute.copy(load, tBgB[None, None, None, 0], tBsB[None, None, None, 0])
        cute.arch.cp_async_commit_group()
        for step in cutlass.range(steps):
            if step + 1 < steps:
                into = (step + 1) % _STAGES
                cute.copy(load, tAgA[None, None, None, step + 1], tAsA[None, None, None, into])
                cute.copy(load, tBgB[None, None, None, step + 1], tBsB[None, None, None, into])
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(1)
            cute.arch.sync_threads()
            stage = step % _STAGES
            for k in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.copy(read_a, tRsA[None, None, k, stage], rA[None, None, k])
                cute.copy(read_b, tRsB[None, None, k, stage], rB[None, None, k])
                cute.gemm(tiled_mma, acc, tCrA[None, None, k], tCrB[None, None, k], acc)
            cute.arch.sync_threads()
        cute.autovec_copy(acc, tCgC)
