"""Kernels that write an fp32 matrix as two fp16 ones: text of a candidate file.

A line of the matrix (the values that one result sums over) is multiplied by a power of two that brings its largest
magnitude to 2^14, so that no value of any size loses more than 2^-40 of the line's largest. Both parts lie with the
shared dimension contiguous, whatever the matrix does.
"""

from __future__ import annotations

SCALES = '''
def largest(values, peak):
    """The largest magnitude as bits of an fp32 number: they order as the numbers do, Inf and NaN above all others."""
    bits = cute.recast_tensor(values, cutlass.Int32)
    for i in range(cute.size(bits)):
        peak = cutlass.max(peak, bits[i] & 0x7FFFFFFF)
    return peak

def power(exponent):
    """2^(exponent - 127); 2^-127, which is subnormal, for 0."""
    return cutlass.max(exponent << 23, cutlass.Int32(0x00400000)).bitcast(cutlass.Float32)

def scale_of(peak):
    """The power of two that brings a line's largest magnitude to 2^14 or more, but below 2^15."""
    return power(cutlass.min(268 - (peak >> 23), cutlass.Int32(254)))

@cute.jit
def undo_of(peak: cutlass.Int32) -> cutlass.Float32:
    """One over that power; NaN for a line with a value that is not finite."""
    undo = power(cutlass.max((peak >> 23) - 14, cutlass.Int32(0)))
    if peak >= 0x7F800000:
        undo = cutlass.Float32(float("nan"))
    return undo
'''

STORE_PARTS = '''
def store_parts(values, scale, high_tile, low_tile):
    """The fp16 number nearest to value * scale, and the one nearest to what that leaves."""
    scaled = values.load() * scale
    high = cute.make_fragment_like(values, cutlass.Float16)
    low = cute.make_fragment_like(values, cutlass.Float16)
    high.store(scaled.to(cutlass.Float16))
    low.store((scaled - high.load().to(cutlass.Float32)).to(cutlass.Float16))
    cute.autovec_copy(high, high_tile)
    cute.autovec_copy(low, low_tile)
'''

COMMON = SCALES + STORE_PARTS

BY_LINES = '''
@cute.kernel
def split_lines(matrix: cute.Tensor, parts: cute.Tensor, undo: cute.Tensor, width: cutlass.Constexpr):
    """Lines that are contiguous, `SPLIT_THREADS` threads each: the largest magnitude, then the parts (out of L1)."""
    tidx, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    lines = cute.size(undo, mode=[0])
    at = block * LINES_PER_BLOCK + tidx // SPLIT_THREADS
    live = cutlass.min(at, cute.size(undo) - 1)  # threads past the last line redo it and store nothing
    line, batch = live % lines, live // lines
    lane = tidx % SPLIT_THREADS
    vectors = cute.zipped_divide(matrix[line, None, batch], (width,))
    values = cute.make_rmem_tensor((width,), cutlass.Float32)
    peak = cutlass.Int32(0)
    for v in cutlass.range(lane, DEPTH // width, SPLIT_THREADS, unroll=4):
        cute.autovec_copy(vectors[None, v], values)
        peak = largest(values, peak)
    peak = cute.arch.warp_reduction(peak, cutlass.max, threads_in_group=min(SPLIT_THREADS, 32))
    if cutlass.const_expr(SPLIT_THREADS > 32):
        smem = cutlass.memory.SmemAllocator()
        peaks = smem.allocate_tensor(cutlass.Int32, cute.make_layout(SPLIT_THREADS // 32), 4)
        if tidx % 32 == 0:
            peaks[tidx // 32] = peak
        cute.arch.sync_threads()
        for warp in cutlass.range_constexpr(SPLIT_THREADS // 32):
            peak = cutlass.max(peak, peaks[warp])
    if at < cute.size(undo):
        high = cute.zipped_divide(parts[line, None, batch, 0], (width,))
        low = cute.zipped_divide(parts[line, None, batch, 1], (width,))
        for v in cutlass.range(lane, PITCH // width, SPLIT_THREADS, unroll=4):
            values.fill(0.0)
            if v < DEPTH // width:
                cute.autovec_copy(vectors[None, v], values)
            store_parts(values, scale_of(peak), high[None, v], low[None, v])
        if lane == 0:
            undo[line, batch] = undo_of(peak)
'''

ACROSS = '''
def largest_of_lines(peak, peaks, lane, warp):
    """The eight warps' results for each of the block's 32 lines, in every thread of the line's lane."""
    peaks[lane, warp] = peak
    cute.arch.sync_threads()
    for other in range(8):
        peak = cutlass.max(peak, peaks[lane, other])
    return peak

@cute.kernel
def find_peaks(matrix: cute.Tensor, slices: cute.Tensor):
    """Lines that lie side by side, 32 a block: the largest magnitude of each slice of `SLICE` values."""
    tidx, _, _ = cute.arch.thread_idx()
    block, number, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    peaks = smem.allocate_tensor(cutlass.Int32, cute.make_layout((32, 8)), 4)
    lane, warp = tidx % 32, tidx // 32
    lines = cute.size(slices, mode=[0])
    blocks = cute.ceil_div(lines, 32)
    at, batch = block % blocks * 32 + lane, block // blocks
    line = cutlass.min(at, lines - 1)
    value = cute.make_rmem_tensor((1,), cutlass.Float32)
    peak = cutlass.Int32(0)
    for k in cutlass.range(number * SLICE + warp, cutlass.min(number * SLICE + SLICE, DEPTH), 8, unroll=8):
        value[0] = matrix[line, k, batch]
        peak = largest(value, peak)
    peak = largest_of_lines(peak, peaks, lane, warp)
    if warp == 0 and at < lines:
        slices[line, number, batch] = peak

@cute.kernel
def split_across(matrix: cute.Tensor, slices: cute.Tensor, parts: cute.Tensor, undo: cute.Tensor):
    """A block turns 32 lines x 128 values in shared memory: they are read across lines and written along them."""
    tidx, _, _ = cute.arch.thread_idx()
    block, piece, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    peaks = smem.allocate_tensor(cutlass.Int32, cute.make_layout((32, 8)), 4)
    turned = smem.allocate_tensor(cutlass.Float16, cute.make_layout((128, 32, 2), stride=(1, 136, 136 * 32)), 16)
    lane, warp = tidx % 32, tidx // 32
    lines = cute.size(undo, mode=[0])
    blocks = cute.ceil_div(lines, 32)
    at, batch = block % blocks * 32 + lane, block // blocks
    line = cutlass.min(at, lines - 1)
    first = piece * 128 + warp * 16
    values = cute.make_rmem_tensor((16,), cutlass.Float32)
    for i in cutlass.range_constexpr(16):
        values[i] = cutlass.Float32(0)
        if first + i < DEPTH:
            values[i] = matrix[line, first + i, batch]
    peak = cutlass.Int32(0)
    for number in cutlass.range(warp, cute.size(slices, mode=[1]), 8):
        peak = cutlass.max(peak, slices[line, number, batch])
    peak = largest_of_lines(peak, peaks, lane, warp)
    high = cute.zipped_divide(turned[None, lane, 0], (16,))
    low = cute.zipped_divide(turned[None, lane, 1], (16,))
    store_parts(values, scale_of(peak), high[None, warp], low[None, warp])
    cute.arch.sync_threads()
    eight = cute.make_rmem_tensor((8,), cutlass.Float16)
    for part in cutlass.range_constexpr(2):
        for i in cutlass.range_constexpr(2):
            row, column = (i * 256 + tidx) // 16, tidx % 16
            to, v = at - lane + row, piece * 16 + column
            if to < lines and v * 8 < PITCH:
                cute.autovec_copy(cute.zipped_divide(turned[None, row, part], (8,))[None, column], eight)
                cute.autovec_copy(eight, cute.zipped_divide(parts[to, None, batch, part], (8,))[None, v])
    if at < lines:
        if piece == 0 and warp == 0:
            undo[line, batch] = undo_of(peak)
'''
