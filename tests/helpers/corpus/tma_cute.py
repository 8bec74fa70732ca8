"""Copies by TMA: a tile into swizzled shared memory, and out again by the threads or by TMA."""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass.cute.nvgpu import cpasync, warpgroup

_KINDS = {
    "none": warpgroup.SmemLayoutAtomKind.K_INTER,
    "32B": warpgroup.SmemLayoutAtomKind.K_SW32,
    "64B": warpgroup.SmemLayoutAtomKind.K_SW64,
    "128B": warpgroup.SmemLayoutAtomKind.K_SW128,
}


class TileCopy:
    """Y = X, of (rows, columns), in tiles of (`rows`, `columns`) with the swizzle of that name.

    `back` "threads": each thread reads the tile as the layout says; "tma": stored by TMA, which cuts at the tensor's
    ends; "add": added to Y by TMA; "raw": shared memory as it lies, one tile after the other.
    """

    def __init__(self, dtype, rows, columns, swizzle, back):
        self.dtype, self.tile, self.swizzle, self.back = dtype, (rows, columns), swizzle, back

    @cute.jit
    def __call__(self, mX: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        atom_layout = warpgroup.make_smem_layout_atom(_KINDS[self.swizzle], self.dtype)
        smem_layout = cute.tile_to_shape(atom_layout, self.tile, order=(0, 1))
        load, tma_x = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), mX, smem_layout, self.tile)
        store, tma_y = load, tma_x
        if cutlass.const_expr(self.back == "tma"):
            store, tma_y = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), mY, smem_layout, self.tile)
        if cutlass.const_expr(self.back == "add"):
            store, tma_y = cpasync.make_tiled_tma_atom(
                cpasync.CopyReduceBulkTensorTileS2GOp(), mY, smem_layout, self.tile
            )
        grid = [cute.ceil_div(mX.shape[0], self.tile[0]), cute.ceil_div(mX.shape[1], self.tile[1]), 1]
        self.kernel(load, tma_x, store, tma_y, mY, smem_layout).launch(grid=grid, block=[128, 1, 1], stream=stream)

    @cute.kernel
    def kernel(
        self,
        load: cute.CopyAtom,
        tma_x: cute.Tensor,
        store: cute.CopyAtom,
        tma_y: cute.Tensor,
        mY: cute.Tensor,
        smem_layout: cute.ComposedLayout,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = cutlass.utils.SmemAllocator()
        barrier = smem.allocate_array(cutlass.Int64, 1)
        sX = smem.allocate_tensor(self.dtype, smem_layout.outer, 1024, swizzle=smem_layout.inner)
        gX = cute.local_tile(tma_x, self.tile, (bidx, bidy))
        tXsX, tXgX = cpasync.tma_partition(
            load, 0, cute.make_layout(1), cute.group_modes(sX, 0, 2), cute.group_modes(gX, 0, 2)
        )
        if tidx == 0:
            cute.arch.mbarrier_init(barrier, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(self.dtype, smem_layout))
            cute.copy(load, tXgX, tXsX, tma_bar_ptr=barrier)
        cute.arch.mbarrier_wait(barrier, 0)

        if cutlass.const_expr(self.back == "raw"):
            plain = cute.make_tensor(cute.recast_ptr(sX.iterator, dtype=self.dtype), cute.make_layout(cute.size(sX)))
            tile = bidx * cute.arch.grid_dim()[1] + bidy
            for place in cutlass.range(tidx, cute.size(sX), 128):
                mY[tile * cute.size(sX) + place] = plain[place]
        elif cutlass.const_expr(self.back == "threads"):
            for place in cutlass.range(tidx, cute.size(sX), 128):
                row, column = place // self.tile[1], place % self.tile[1]
                gm, gn = bidx * self.tile[0] + row, bidy * self.tile[1] + column
                if gm < mY.shape[0] and gn < mY.shape[1]:
                    mY[gm, gn] = sX[row, column]
        else:
            gY = cute.local_tile(tma_y, self.tile, (bidx, bidy))
            tYsX, tYgY = cpasync.tma_partition(
                store, 0, cute.make_layout(1), cute.group_modes(sX, 0, 2), cute.group_modes(gY, 0, 2)
            )
            cute.arch.sync_threads()
            if warp == 0:
                cute.copy(store, tYsX, tYgY)
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0)
