"""A convolution's weight and input as fp16 parts: text of a candidate file, for Hopper."""

from __future__ import annotations

SPLIT_WEIGHT = '''
@cute.kernel
def split_weight(weight: cute.Tensor, parts: cute.Tensor, undo: cute.Tensor):
    """A block for a channel of results: its weights, scaled by a power of two, as parts in the order of their use."""
    tidx, _, _ = cute.arch.thread_idx()
    channel, _, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    peaks = smem.allocate_tensor(cutlass.Int32, cute.make_layout(4), 16)
    value = cute.make_rmem_tensor((1,), cutlass.Float32)
    peak = cutlass.Int32(0)
    if channel < OUT_CHANNELS:
        for i in cutlass.range(tidx, CHANNELS * KERNEL, 128, unroll=4):
            value[0] = weight[channel, i // KERNEL, i % KERNEL]
            peak = largest(value, peak)
    peak = cute.arch.warp_reduction(peak, cutlass.max)
    if tidx % 32 == 0:
        peaks[tidx // 32] = peak
    cute.arch.sync_threads()
    for warp in cutlass.range_constexpr(4):
        peak = cutlass.max(peak, peaks[warp])
    scale = scale_of(peak)
    tile, column = channel // TILE_N, channel % TILE_N
    for c in cutlass.range(tidx, 8 * EIGHTS, 128):
        inside = (channel < OUT_CHANNELS) & (c < CHANNELS)
        one_round, eight = c // (8 * ROUND), c // 8 % ROUND
        for phase in cutlass.range_constexpr(PHASES):
            count = len(TAPS[phase])
            for k in cutlass.range_constexpr(count):
                scaled = cutlass.Float32(0)
                if inside:
                    scaled = weight[channel, c, TAPS[phase][k][0]] * scale
                at = eight // 2 * 2 * count + k * min(ROUND, 2) + eight % 2
                piece = FIRST[phase] + one_round * PIECES[phase] + at // (2 * STEPS)
                high = scaled.to(cutlass.Float16)
                parts[c % 8, column, at % (2 * STEPS), 0, piece, tile] = high
                if cutlass.const_expr(PARTS == 2):
                    low = (scaled - high.to(cutlass.Float32)).to(cutlass.Float16)
                    parts[c % 8, column, at % (2 * STEPS), 1, piece, tile] = low
            if eight == 0:
                last = FIRST[phase] + (one_round + 1) * PIECES[phase] - 1  # piece, of which something may be left
                for at in cutlass.range_constexpr(count * ROUND, 2 * STEPS * PIECES[phase]):
                    for part in cutlass.range_constexpr(PARTS):
                        parts[c % 8, column, at % (2 * STEPS), part, last, tile] = cutlass.Float16(0)
    if tidx == 0:
        undo[channel] = undo_of(peak)
'''

LOAD = '''
@cute.jit
def read(
    x: cute.Tensor,
    values: cute.Tensor,
    slab: cutlass.Int32,
    tidx: cutlass.Int32,
    n: cutlass.Int32,
    first_z: cutlass.Int32,
    first_y: cutlass.Int32,
    first_x: cutlass.Int32,
):
    """A thread's values of a slab: eight channels of a place of the halo at a time; zeros outside the input."""
    values.fill(0.0)
    for i in cutlass.range_constexpr(ITEMS):
        item = tidx + i * THREADS
        place, channel = item % HALO, 8 * (slab * SLAB + item // HALO)
        at_z, at_y = first_z + place // (HALO_Y * HALO_X), first_y + place // HALO_X % HALO_Y
        at_x = first_x + place % HALO_X
        inside = (at_z >= 0) & (at_z < SIZE_Z) & (at_y >= 0) & (at_y < SIZE_Y) & (at_x >= 0) & (at_x < SIZE_X)
        if inside & (item < SLAB * HALO):
            for c in cutlass.range_constexpr(min(8, CHANNELS)):
                if channel + c < CHANNELS:
                    values[c, i] = x[n, channel + c, at_z, at_y, at_x]

@cute.jit
def load_halo(
    x: cute.Tensor,
    halo: cute.Tensor,
    peaks: cute.Tensor,
    tidx: cutlass.Int32,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x_: cutlass.Int32,
):
    """What a tile's windows cover, as parts; one over the power of two that they were multiplied by.

    Where a thread cannot hold its values, it reads them once for the largest, and again."""
    values = cute.make_rmem_tensor((8, ITEMS), cutlass.Float32)
    peak = cutlass.Int32(0)
    for slab in cutlass.range(SLABS, unroll=1):
        read(x, values, slab, tidx, n, z, y, x_)
        peak = largest(values, peak)
    peak = cute.arch.warp_reduction(peak, cutlass.max)
    if tidx % 32 == 0:
        peaks[tidx // 32] = peak
    cute.arch.sync_threads()  # also: the tile before has been multiplied
    for warp in cutlass.range_constexpr(THREADS // 32):
        peak = cutlass.max(peak, peaks[warp])
    for slab in cutlass.range(SLABS, unroll=1):
        if cutlass.const_expr(SLABS > 1):
            read(x, values, slab, tidx, n, z, y, x_)
        for i in cutlass.range_constexpr(ITEMS):
            item = tidx + i * THREADS
            if item < SLAB * HALO:
                place, eight = item % HALO, slab * SLAB + item // HALO
                {store}
    cute.arch.fence_proxy("async.shared", space="cta")  # wgmma sees what was written
    cute.arch.sync_threads()
    return undo_of(peak)
'''

TO_PARTS = "store_parts(values[None, i], scale_of(peak), halo[None, place, eight, 0], halo[None, place, eight, 1])"
TO_ONE = "store_part(values[None, i], scale_of(peak), halo[None, place, eight, 0])"

STORE_ONE = '''
def store_part(values, scale, tile):
    """The fp16 number nearest to value * scale, which has as many digits as one in TF32."""
    part = cute.make_fragment_like(values, cutlass.Float16)
    part.store((values.load() * scale).to(cutlass.Float16))
    cute.autovec_copy(part, tile)
'''
