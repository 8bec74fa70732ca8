"""Sums of a convolution's results over the positions of a tile: text of a candidate file, for Hopper.

A thread adds up its positions' results by channels, over a tile's phases; a warp, then the block add those up, always
in the same order. A later kernel adds up the sums of an image's tiles.
"""

from __future__ import annotations

FINISH = '''
@cute.jit
def finish(
    sums: cute.Tensor,
    total: cute.Tensor,
    places: cute.Tensor,
    undo: cutlass.Float32,
    phase: cutlass.Constexpr,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
    first_channel: cutlass.Int32,
    {parameters}
):
    """Adds a warpgroup's results, at positions from (z, y, x) on, to a thread's sums; 0 if all are finite."""
    row = places[0][0]  # of a thread's two: the other is in the next row of positions
    at_z, at_y, at_x, is_one = result_of(z, y + row // 8, x + row % 8, phase)
    _, _, _, is_other = result_of(z, y + row // 8 + 1, x + row % 8, phase)
    {positions}
    watch = cutlass.Float32(0)
    for first in cutlass.range_constexpr(0, cute.size(total), {together}):
        end = min(first + {together}, cute.size(total))
        {results}
        {read}
        for i in cutlass.range_constexpr(first, end):
            channel = cutlass.min(first_channel + places[i][1], OUT_CHANNELS - 1)
            value = unscaled(total[i], undo, weight_undo[channel])
            watch += value * 0.0
            {epilogue}
        for i in cutlass.range_constexpr(first, end):
            inside = (is_one, is_other)[i % 4 // 2]
            sums[i // 4 * 2 + i % 2] += results[i - first] if inside else cutlass.Float32(0)
    return watch

@cute.jit
def keep_sums(
    sums: cute.Tensor,
    of_warps: cute.Tensor,
    places: cute.Tensor,
    watch: cutlass.Float32,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
    first_channel: cutlass.Int32,
    {parameters}
):
    """A warp's sums to shared memory: lanes of the same channels are four apart."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    for k in cutlass.range_constexpr(cute.size(sums)):
        value = sums[k]
        for apart in (4, 8, 16):
            value += cute.arch.shuffle_sync_bfly(value, offset=apart)
        if lane < 4:
            of_warps[places[k // 2 * 4 + k % 2][1], warp] = value
    if cute.arch.vote_any_sync(watch != 0.0):
        cute.arch.sync_warp()
        for channel in cutlass.range(lane, TILE_N, 32, unroll=1):
            if first_channel + channel < OUT_CHANNELS:
                of_warps[channel, warp] = again(warp % 4 * 16, n, z, y, x, first_channel + channel, {tensors})

@cute.jit
def again(
    first_row: cutlass.Int32,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
    channel: cutlass.Int32,
    {parameters}
):
    """A warp's sum for a channel by fp32 arithmetic: in the tile or the weights there is Inf or NaN."""
    sum_ = cutlass.Float32(0)
    for row in cutlass.range(first_row, first_row + 16, unroll=1):
        for phase in cutlass.range(PHASES, unroll=1):
            at_z, at_y, at_x, inside = result_of(z, y + row // 8, x + row % 8, phase)
            if inside:
                value = plain(source, weight, n, channel, at_z, at_y, at_x)
                sum_ += result_at(value, n, channel, at_z, at_y, at_x, {outside})
    return sum_

@cute.jit
def store_sums(of_warps: cute.Tensor, tidx: cutlass.Int32, first_channel: cutlass.Int32, sums_of_tile: cute.Tensor):
    """The block's sums by channels, of all warps."""
    for column in cutlass.range(tidx, TILE_N, THREADS):
        if first_channel + column < OUT_CHANNELS:
            sum_ = cutlass.Float32(0)
            for warp in cutlass.range_constexpr(THREADS // 32):
                sum_ += of_warps[column, warp]
            sums_of_tile[first_channel + column] = sum_
'''

STATES = """\
sums = cute.make_rmem_tensor((TILE_N // 4,), cutlass.Float32)  # of a thread's positions, by its channels
of_warps = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE_N, THREADS // 32)), 16)"""

POSITIONS = """
one = at_position(n, at_z, at_y, at_x, {varying})
other = at_position(n, at_z, at_y + STEP_Y, at_x, {varying})
"""

BEGIN = "sums.fill(0.0)"

END = """
keep_sums(sums, of_warps, places, watch, n, z + own_z, y + own_y, x + own_x, tile * TILE_N, {tensors})
cute.arch.sync_threads()
store_sums(of_warps, tidx, tile * TILE_N, {sums}[n, None, work % SUMS])
"""
