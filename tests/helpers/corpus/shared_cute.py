"""Kernels of plain CuTe: transposes through shared memory, sums of rows, copies of several elements at once."""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream


class Transpose:
    """Y (columns, rows) = X (rows, columns)ᵀ in tiles of 32 × 32, padded by a column or swizzled."""

    def __init__(self, dtype, how):
        self.dtype, self.how = dtype, how

    @cute.jit
    def __call__(self, mX: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        grid = [cute.ceil_div(mX.shape[0], 32), cute.ceil_div(mX.shape[1], 32), 1]
        self.kernel(mX, mY).launch(grid=grid, block=[32, 8, 1], stream=stream)

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mY: cute.Tensor):
        tx, ty, _ = cute.arch.thread_idx()
        bx, by, _ = cute.arch.block_idx()
        smem = cutlass.utils.SmemAllocator()
        if cutlass.const_expr(self.how == "swizzle"):
            plain = cute.make_layout((32, 32), stride=(32, 1))
            tile = smem.allocate_tensor(self.dtype, plain, 128, swizzle=cute.make_swizzle(3, 2, 3))
        else:
            tile = smem.allocate_tensor(self.dtype, cute.make_layout((32, 32), stride=(33, 1)), 128)
        for step in cutlass.range_constexpr(4):
            row, column = bx * 32 + ty + 8 * step, by * 32 + tx
            if row < mX.shape[0] and column < mX.shape[1]:
                tile[ty + 8 * step, tx] = mX[row, column]
        cute.arch.sync_threads()
        for step in cutlass.range_constexpr(4):
            row, column = bx * 32 + tx, by * 32 + ty + 8 * step
            if row < mX.shape[0] and column < mX.shape[1]:
                mY[column, row] = tile[tx, ty + 8 * step]


class RowSums:
    """Y (rows) float32 = sums of the rows of X: a block a row, by shuffles and shared memory."""

    def __init__(self, dtype):
        self.dtype = dtype

    @cute.jit
    def __call__(self, mX: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        self.kernel(mX, mY).launch(grid=[mX.shape[0], 1, 1], block=[128, 1, 1], stream=stream)

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        smem = cutlass.utils.SmemAllocator()
        partial = smem.allocate_tensor(cutlass.Float32, cute.make_layout(4), 16)
        total = cutlass.Float32(0.0)
        for column in cutlass.range(tidx, mX.shape[1], 128):
            total += mX[row, column].to(cutlass.Float32)
        total = cute.arch.warp_reduction(total, lambda a, b: a + b)
        if tidx % 32 == 0:
            partial[tidx // 32] = total
        cute.arch.sync_threads()
        if tidx == 0:
            mY[row] = (partial[0] + partial[1]) + (partial[2] + partial[3])


class WideCopy:
    """Y = X · 2 + 1, `width` elements a thread at once; the length is a multiple of 128 · width."""

    def __init__(self, dtype, width):
        self.dtype, self.width = dtype, width

    @cute.jit
    def __call__(self, mX: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        threads = cute.size(mX) // self.width
        self.kernel(mX, mY).launch(grid=[cute.ceil_div(threads, 128), 1, 1], block=[128, 1, 1], stream=stream)

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        place = bidx * 128 + tidx
        gX = cute.local_tile(mX, (self.width,), (place,))
        gY = cute.local_tile(mY, (self.width,), (place,))
        values = cute.make_rmem_tensor((self.width,), self.dtype)
        cute.autovec_copy(gX, values)
        made = values.load().to(cutlass.Float32) * 2.0 + 1.0
        values.store(made.to(self.dtype))
        cute.autovec_copy(values, gY)
