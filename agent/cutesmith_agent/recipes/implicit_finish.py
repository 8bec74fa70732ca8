"""From sums to a convolution's results: text of a candidate file, for Hopper."""

from __future__ import annotations

PLACES = '''
def unscaled(total, one, other):
    """Without both powers of two, the smaller first: neither step leaves fp32's range before its result does."""
    return total * cutlass.min(one, other) * cutlass.max(one, other)

def result_of(z, y, x, phase):
    """Which result a position has in a phase, and whether there is such a one."""
    z = STEP_Z * z + phase // (STEP_Y * STEP_X)
    y, x = STEP_Y * y + phase // STEP_X % STEP_Y, STEP_X * x + phase % STEP_X
    inside = (z < RESULTS_Z) & (y < RESULTS_Y) & (x < RESULTS_X)
    return z, y, x, inside
'''

FINISH = '''
@cute.jit
def finish(
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
    """A warpgroup's results, at positions from (z, y, x) on, through the epilogue to memory; 0 if all are finite."""
    row = places[0][0]  # of a thread's two: the other is in the next row of positions
    at_z, at_y, at_x, is_one = result_of(z, y + row // 8, x + row % 8, phase)
    _, _, _, is_other = result_of(z, y + row // 8 + 1, x + row % 8, phase)
    one = at_position(n, at_z, at_y, at_x, {varying})
    other = at_position(n, at_z, at_y + STEP_Y, at_x, {varying})
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
        if is_one:
            for i in cutlass.range_constexpr(first, end):
                channel = first_channel + places[i][1]
                if cutlass.const_expr(i % 4 < 2):
                    {store_one}
        if is_other:
            for i in cutlass.range_constexpr(first, end):
                channel = first_channel + places[i][1]
                if cutlass.const_expr(i % 4 >= 2):
                    {store_other}
    return watch

@cute.jit
def again(
    places: cute.Tensor,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
    first_channel: cutlass.Int32,
    {parameters}
):
    """A thread's results by fp32 arithmetic: in the tile or the weights there is Inf or NaN."""
    for i in cutlass.range(cute.size(places), unroll=1):
        row, channel = places[i][0], first_channel + places[i][1]
        for phase in cutlass.range(PHASES, unroll=1):
            at_z, at_y, at_x, inside = result_of(z, y + row // 8, x + row % 8, phase)
            if inside & (channel < OUT_CHANNELS):
                value = plain(source, weight, n, channel, at_z, at_y, at_x)
                store(value, n, channel, at_z, at_y, at_x, {outside})
'''

PLAIN = """
@cute.jit
def plain(
    source: cute.Tensor,
    weight: cute.Tensor,
    n: cutlass.Int32,
    channel: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
):
    total = cutlass.Float32(0)
    for c in cutlass.range(CHANNELS, unroll=1):
        for tap in cutlass.range(KERNEL, unroll=1):
            from_z = z + BEGIN_Z + APART_Z * (tap // (KERNEL_Y * KERNEL_X))
            from_y = y + BEGIN_Y + APART_Y * (tap // KERNEL_X % KERNEL_Y)
            from_x = x + BEGIN_X + APART_X * (tap % KERNEL_X)
            inside = (from_z >= 0) & (from_z < STEP_Z * SIZE_Z) & (from_y >= 0) & (from_y < STEP_Y * SIZE_Y)
            inside = inside & (from_x >= 0) & (from_x < STEP_X * SIZE_X)
            if inside & (from_z % STEP_Z + from_y % STEP_Y + from_x % STEP_X == 0):
                total += source[n, c, from_z // STEP_Z, from_y // STEP_Y, from_x // STEP_X] * weight[channel, c, tap]
    return total
"""

ONCE_MORE = """
if watch != 0.0:
    again(places, n, z + own_z, y + own_y, x + own_x, tile * TILE_N, {tensors})
"""
