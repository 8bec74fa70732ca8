"""Small matrix products with TMA and wgmma: C (M, N) float32 = A (M, K) · B (N, K)ᵀ, one 64-row tile a block."""

import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90
from cuda.bindings.driver import CUstream
from cutlass.cute.nvgpu import cpasync, warpgroup

_STAGES = 2


class Gemm:
    """Tiles of 64 × `columns` × `depth`. Of a cluster's two blocks (`cluster` 2) both take the same B, by multicast."""

    def __init__(self, dtype, columns, depth, *, cluster=1, acc=cutlass.Float32):
        self.dtype, self.tile, self.cluster, self.acc = dtype, (64, columns, depth), cluster, acc

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: CUstream):
        layout_a, layout_b = utils.LayoutEnum.from_tensor(mA), utils.LayoutEnum.from_tensor(mB)
        tiled_mma = sm90.make_trivial_tiled_mma(
            self.dtype,
            self.dtype,
            layout_a.sm90_mma_major_mode(),
            layout_b.sm90_mma_major_mode(),
            self.acc,
            (1, 1, 1),
            tiler_mn=(64, self.tile[1]),
        )
        smem_a = sm90.make_smem_layout_a(layout_a, self.tile, self.dtype, _STAGES)
        smem_b = sm90.make_smem_layout_b(layout_b, self.tile, self.dtype, _STAGES)
        atom_a, tma_a = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(),
            mA,
            cute.slice_(smem_a, (None, None, 0)),
            (self.tile[0], self.tile[2]),
        )
        shared = self.cluster > 1
        op_b = cpasync.CopyBulkTensorTileG2SMulticastOp() if shared else cpasync.CopyBulkTensorTileG2SOp()
        atom_b, tma_b = cpasync.make_tiled_tma_atom(
            op_b,
            mB,
            cute.slice_(smem_b, (None, None, 0)),
            (self.tile[1], self.tile[2]),
            num_multicast=self.cluster,
        )
        grid = [cute.ceil_div(mC.shape[0], 64), cute.ceil_div(mC.shape[1], self.tile[1]), 1]
        self.kernel(atom_a, tma_a, atom_b, tma_b, mC, tiled_mma, smem_a, smem_b).launch(
            grid=grid, block=[128, 1, 1], cluster=[self.cluster, 1, 1], stream=stream
        )

    @cute.kernel
    def kernel(
        self,
        atom_a: cute.CopyAtom,
        mA: cute.Tensor,
        atom_b: cute.CopyAtom,
        mB: cute.Tensor,
        mC: cute.Tensor,
        tiled_mma: cute.TiledMma,
        smem_a: cute.ComposedLayout,
        smem_b: cute.ComposedLayout,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())

        smem = cutlass.utils.SmemAllocator()
        barriers = smem.allocate_array(cutlass.Int64, 2 * _STAGES)
        sA = smem.allocate_tensor(self.dtype, smem_a.outer, 1024, swizzle=smem_a.inner)
        sB = smem.allocate_tensor(self.dtype, smem_b.outer, 1024, swizzle=smem_b.inner)
        size_a = cute.size_in_bytes(self.dtype, cute.slice_(smem_a, (None, None, 0)))
        size_b = cute.size_in_bytes(self.dtype, cute.slice_(smem_b, (None, None, 0)))
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=barriers,
            num_stages=_STAGES,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * self.cluster),
            tx_count=size_a + size_b,
            cta_layout_vmnk=cute.make_layout((1, self.cluster, 1, 1)),
        )

        gA = cute.local_tile(mA, self.tile, (bidx, bidy, None), proj=(1, None, 1))
        gB = cute.local_tile(mB, self.tile, (bidx, bidy, None), proj=(None, 1, 1))
        gC = cute.local_tile(mC, self.tile, (bidx, bidy, None), proj=(1, 1, None))
        tAsA, tAgA = cpasync.tma_partition(
            atom_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        tBsB, tBgB = cpasync.tma_partition(
            atom_b, rank, cute.make_layout(self.cluster), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )

        thr_mma = tiled_mma.get_slice(tidx)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        tCgC = thr_mma.partition_C(gC)
        acc = cute.make_rmem_tensor(tCgC.shape, self.acc)

        steps = cute.size(gA, mode=[2])
        mask = cutlass.Int16((1 << self.cluster) - 1) if cutlass.const_expr(self.cluster > 1) else None
        load = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, _STAGES)
        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, _STAGES)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for _ in cutlass.range(0, steps, 1, unroll=1):
            if warp == 0:
                pipe.producer_acquire(load)
                barrier = pipe.producer_get_barrier(load)
                cute.copy(atom_a, tAgA[(None, load.count)], tAsA[(None, load.index)], tma_bar_ptr=barrier)
                cute.copy(
                    atom_b, tBgB[(None, load.count)], tBsB[(None, load.index)], tma_bar_ptr=barrier, mcast_mask=mask
                )
                pipe.producer_commit(load)
            load.advance()
            pipe.consumer_wait(read)
            warpgroup.fence()
            for k in cutlass.range(cute.size(tCrA, mode=[2]), unroll_full=True):
                where = (None, None, k, read.index)
                cute.gemm(tiled_mma, acc, tCrA[where], tCrB[where], acc)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            pipe.consumer_release(read)
            read.advance()

        if cutlass.const_expr(self.cluster > 1):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        cute.autovec_copy(acc, tCgC)
