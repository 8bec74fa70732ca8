"""c = a bᵀ for fp16 matrices with rows along k, in fp32: a warp that loads by TMA, a warp group that multiplies."""

import torch

PLAIN = (torch.Tensor, torch.nn.Parameter)
M, N, K, STAGES = 128, 128, 64, 3  # of a tile
BYTES = (M + N) * K * 2


def explain(module, a, b):
    return None if type(a) in PLAIN and a.is_cuda and a.shape[1] % 8 == 0 else "rows are no multiple of 16 bytes"


def supports(module, a, b):
    return explain(module, a, b) is None


def warm_up(module, a, b):
    _compile()


def forward(module, a, b):
    c = torch.empty(a.shape[0], b.shape[0], dtype=torch.float32, device=a.device)
    _compile()(a, b, c)
    return c


def _compile():
    import cutlass
    import cutlass.cute as cute
    import cutlass.utils.hopper_helpers as sm90
    from cuda.bindings.driver import CUstream
    from cutlass.cute.nvgpu import cpasync, warpgroup
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream
    from cutlass.utils import LayoutEnum

    @cute.kernel
    def gemm_kernel(
        loadA: cute.CopyAtom,
        mA: cute.Tensor,
        loadB: cute.CopyAtom,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mma: cute.TiledMma,
        layoutA: cute.ComposedLayout,
        layoutB: cute.ComposedLayout,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = cutlass.memory.SmemAllocator()
        sA = smem.allocate_tensor(cutlass.Float16, layoutA.outer, 1024, swizzle=layoutA.inner)
        sB = smem.allocate_tensor(cutlass.Float16, layoutB.outer, 1024, swizzle=layoutB.inner)
        full = smem.allocate_array(cutlass.Int64, STAGES)
        empty = smem.allocate_array(cutlass.Int64, STAGES)
        gA = cute.local_tile(mA, (M, K), (bidx, None))
        gB = cute.local_tile(mB, (N, K), (bidy, None))
        gC = cute.local_tile(mC, (M, N), (bidx, bidy))
        one = cute.make_layout(1)
        tAs, tAg = cpasync.tma_partition(loadA, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        tBs, tBg = cpasync.tma_partition(loadB, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        tiles = cute.size(gA, mode=[2])
        if tidx == 0:
            for stage in cutlass.range_constexpr(STAGES):
                cute.arch.mbarrier_init(full + stage, 1)
                cute.arch.mbarrier_init(empty + stage, 4)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if warp < 4:
            cute.arch.setmaxregister_decrease(40)
            if warp == 0:
                for k in cutlass.range(tiles, unroll=1):
                    stage = k % STAGES
                    cute.arch.mbarrier_wait(empty + stage, (k // STAGES) % 2 ^ 1)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, BYTES)
                    cute.copy(loadA, tAg[None, k], tAs[None, stage], tma_bar_ptr=full + stage)
                    cute.copy(loadB, tBg[None, k], tBs[None, stage], tma_bar_ptr=full + stage)
        else:
            cute.arch.setmaxregister_increase(232)
            thread = mma.get_slice(tidx - 128)
            tCg = thread.partition_C(gC)
            tCc = thread.partition_C(cute.make_identity_tensor((M, N)))
            tCrA = mma.make_fragment_A(thread.partition_A(sA))
            tCrB = mma.make_fragment_B(thread.partition_B(sB))
            sums = cute.make_rmem_tensor(tCg.shape, cutlass.Float32)
            sums.fill(0.0)
            mma.set(warpgroup.Field.ACCUMULATE, True)
            for k in cutlass.range(tiles, unroll=1):
                stage = k % STAGES
                cute.arch.mbarrier_wait(full + stage, (k // STAGES) % 2)
                warpgroup.fence()
                for part in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                    cute.gemm(mma, sums, tCrA[None, None, part, stage], tCrB[None, None, part, stage], sums)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                if tidx % 32 == 0:
                    cute.arch.mbarrier_arrive(empty + stage)
            for i in cutlass.range_constexpr(cute.size(sums)):
                if bidx * M + tCc[i][0] < mC.shape[0] and bidy * N + tCc[i][1] < mC.shape[1]:
                    tCg[i] = sums[i]

    @cute.jit
    def gemm(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: CUstream):
        major = LayoutEnum.from_tensor(mA).sm90_mma_major_mode()
        half = cutlass.Float16
        mma = sm90.make_trivial_tiled_mma(half, half, major, major, cutlass.Float32, (1, 1, 1), tiler_mn=(64, N))
        layoutA = sm90.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (M, N, K), half, STAGES)
        layoutB = sm90.make_smem_layout_b(LayoutEnum.ROW_MAJOR, (M, N, K), half, STAGES)
        load = cpasync.CopyBulkTensorTileG2SOp()
        loadA, tA = cpasync.make_tiled_tma_atom(load, mA, cute.slice_(layoutA, (None, None, 0)), (M, K))
        loadB, tB = cpasync.make_tiled_tma_atom(load, mB, cute.slice_(layoutB, (None, None, 0)), (N, K))
        grid = [cute.ceil_div(mC.shape[0], M), cute.ceil_div(mC.shape[1], N), 1]
        gemm_kernel(loadA, tA, loadB, tB, mC, mma, layoutA, layoutB).launch(grid=grid, block=[256, 1, 1], stream=stream)

    def matrix(dtype):
        shape = (cute.sym_int(), cute.sym_int(divisibility=8))
        return make_fake_compact_tensor(dtype, shape, stride_order=(1, 0), assumed_align=16)

    operands = (matrix(cutlass.Float16), matrix(cutlass.Float16), matrix(cutlass.Float32))
    return cute.compile(gemm, *operands, make_fake_stream(use_tvm_ffi_env_stream=True), options="--enable-tvm-ffi")
