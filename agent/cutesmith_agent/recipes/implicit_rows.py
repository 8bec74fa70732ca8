"""A convolution's sums by way of shared memory, so that neighbouring threads have neighbouring results: text of a file.

Tensor cores leave a thread a few channels of two positions; a transposed convolution's phases alternate along a row. In
shared memory a tile's sums lie in the order of the results. A thread then takes a place there, channel after channel.
"""

from __future__ import annotations

PLACES = '''
ROW = STEP_X * TILE_X  # results of a tile's row
PLANE = TILE_Z * TILE_Y * ROW  # of a channel, for one phase along depth and height
PITCH = PLANE + 4  # of channels in shared memory: a warp's values lie on different banks
BESIDE = THREADS // PLANE  # channels that the block writes at a time

def result_in_row(place, phase, z, y, x):
    """Which result has this place in a tile from (z, y, x) on, and whether there is such a one."""
    z = STEP_Z * (z + place // (ROW * TILE_Y)) + phase // (STEP_Y * STEP_X)
    y = STEP_Y * (y + place // ROW % TILE_Y) + phase // STEP_X % STEP_Y
    x = STEP_X * x + place % ROW
    return z, y, x, (z < RESULTS_Z) & (y < RESULTS_Y) & (x < RESULTS_X)
'''

FINISH = '''
@cute.jit
def keep(
    total: cute.Tensor,
    places: cute.Tensor,
    turned: cute.Tensor,
    first: cutlass.Constexpr,
    phase: cutlass.Constexpr,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
):
    """A warpgroup's sums of STAGED channels from the first on to shared memory; (z, y, x): its place in the tile."""
    row = places[0][0]
    place = (z * TILE_Y + y + row // 8) * ROW + STEP_X * (x + row % 8) + phase % STEP_X
    for i in cutlass.range_constexpr(first // 2, (first + STAGED) // 2):
        turned[place + i % 4 // 2 * ROW, places[i][1] - first] = total[i]

@cute.jit
def write(
    turned: cute.Tensor,
    undo: cutlass.Float32,
    phase: cutlass.Constexpr,
    tidx: cutlass.Int32,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
    first_channel: cutlass.Int32,
    {parameters}
):
    """Results of a tile from (z, y, x) on, of STAGED channels from the first on, through the epilogue to memory."""
    place, beside = tidx % PLANE, tidx // PLANE
    z, y, x, inside = result_in_row(place, phase, z, y, x)
    if inside:
        line = at_position(n, z, y, x, {varying})
        watch = cutlass.Float32(0)  # until a sum is not finite
        for few in cutlass.range(0, STAGED, BESIDE * {together}, unroll=1):
            {results}
            {read}
            for i in cutlass.range_constexpr({together}):
                c = few + BESIDE * i + beside
                channel = {channel}
                value = unscaled(turned[place, c], undo, weight_undo[channel])
                watch += value * 0.0
                {epilogue}
            for i in cutlass.range_constexpr({together}):
                channel = first_channel + few + BESIDE * i + beside
                {store}
        if watch != 0.0:
            for c in cutlass.range(first_channel + beside, {end}, BESIDE, unroll=1):
                store(plain(source, weight, n, c, z, y, x), n, c, z, y, x, {outside})

def unscaled(total, one, other):
    """Without both powers of two, the smaller first: neither step leaves fp32's range before its result does."""
    return total * cutlass.min(one, other) * cutlass.max(one, other)
'''

STATES = "turned = smem.allocate_tensor(cutlass.Float32, cute.make_layout((PLANE, STAGED), stride=(1, PITCH)), 16)"

TILE = """
for first in cutlass.range_constexpr(0, TILE_N, STAGED):
    if cutlass.const_expr(phase % STEP_X == 0):
        cute.arch.sync_threads()  # what was there before has been written
    keep(total, places, turned, first, phase, own_z, own_y, own_x)
    if cutlass.const_expr(phase % STEP_X == STEP_X - 1):
        cute.arch.sync_threads()
        write(turned, undo, phase, tidx, n, z, y, x, tile * TILE_N + first, {tensors})
"""
