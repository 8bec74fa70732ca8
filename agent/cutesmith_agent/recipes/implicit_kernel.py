"""A convolution as a matrix product on Hopper's tensor cores: text of a candidate file.

A block keeps the input that a tile of positions needs in shared memory as fp16 parts, eight channels of a place side by
side. There an element of the kernel is a shift: the matrix that tensor cores multiply is the same memory, seen from
another start. A thread copies the weight's parts in bulk, which a kernel before has written in the order of their use.
"""

from __future__ import annotations

IMPORTS = """
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.utils import hopper_helpers
"""

DERIVED = """
THREADS = 128 * (TILE_Z * TILE_Y * TILE_X // 64)  # of a block: a warpgroup for 8 x 8 positions
HALO_Z, HALO_Y, HALO_X = TILE_Z + REACH_Z - 1, TILE_Y + REACH_Y - 1, TILE_X + REACH_X - 1
HALO = HALO_Z * HALO_Y * HALO_X  # places of the input that a tile's windows cover
EIGHTS = ROUND * ROUNDS  # of channels
SLAB = EIGHTS // SLABS
ITEMS = -(-SLAB * HALO // THREADS)  # eights of channels of a place that a thread reads at a time
CHANNEL_TILES = -(-OUT_CHANNELS // TILE_N)
# By phase: elements of the kernel, and their places in the halo.
TAPS = tuple(
    tuple(
        ((z * KERNEL_Y + y) * KERNEL_X + x, (at_z * HALO_Y + at_y) * HALO_X + at_x)
        for z, at_z in of_z
        for y, at_y in of_y
        for x, at_x in of_x
    )
    for of_z in ALONG_Z
    for of_y in ALONG_Y
    for of_x in ALONG_X
)
ORIGINS = tuple((z, y, x) for z in ORIGINS_Z for y in ORIGINS_Y for x in ORIGINS_X)
# Steps of 16 values: an element of the kernel and 16 channels, or two elements and eight.
OF_A_ROUND = tuple(-(-len(taps) * ROUND // 2) for taps in TAPS)
PIECES = tuple(-(-steps // STEPS) for steps in OF_A_ROUND)  # of a round
FIRST = tuple(ROUNDS * sum(PIECES[:phase]) for phase in range(len(PIECES)))
ALL_PIECES = ROUNDS * sum(PIECES)
PIECE_VALUES = 16 * STEPS * TILE_N * PARTS
"""

OPERANDS = '''
def positions_of(thread, mma, halo, corner, eight, phase, step, part):
    """The step's 16 values for a warpgroup's 64 positions: two eights, `apart` places from each other."""
    taps = TAPS[phase]
    if ROUND == 2:
        start, apart = taps[step][1], HALO
    else:
        start, other = taps[2 * step][1], taps[min(2 * step + 1, len(taps) - 1)][1]
        apart = other - start
    at = halo[None, None, None, part].iterator + cute.assume((corner + start + eight * HALO) * 8, divby=8)
    layout = cute.make_layout(((8, 8), (8, 2)), stride=((8, 8 * HALO_X), (1, 8 * apart)))
    return mma.make_fragment_A(thread.partition_A(cute.make_tensor(at, layout)))[None, None, 0]

def weights_of(thread, mma, stages, stage, step, part):
    """The step's 16 values for all channels of results."""
    at = stages[None, None, None, part, stage].iterator + 16 * TILE_N * step
    layout = cute.make_layout(((8, TILE_N // 8), (8, 2)), stride=((8, 64), (1, 8 * TILE_N)))
    return mma.make_fragment_B(thread.partition_B(cute.make_tensor(at, layout)))[None, None, 0]

def tile_of(work):
    """Where a tile begins."""
    tiles_z, tiles_y, tiles_x = -(-POSITIONS_Z // TILE_Z), -(-POSITIONS_Y // TILE_Y), -(-POSITIONS_X // TILE_X)
    x, rest = work % tiles_x * TILE_X, work // tiles_x
    y, rest = rest % tiles_y * TILE_Y, rest // tiles_y
    return rest // tiles_z, rest % tiles_z * TILE_Z, y, x
'''

FINISH = '''
def unscaled(total, one, other):
    """Without both powers of two, the smaller first: neither step leaves fp32's range before its result does."""
    return total * cutlass.min(one, other) * cutlass.max(one, other)

def result_of(z, y, x, phase):
    """Which result a position has in a phase, and whether there is such a one."""
    origin = ORIGINS[phase]
    z, y, x = STEP_Z * z + origin[0], STEP_Y * y + origin[1], STEP_X * x + origin[2]
    inside = (z >= 0) & (z < RESULTS_Z) & (y >= 0) & (y < RESULTS_Y) & (x >= 0) & (x < RESULTS_X)
    return z, y, x, inside

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
    """A warpgroup's results, at positions from (z, y, x) on, through the epilogue to memory."""
    row = places[0][0]  # of a thread's two: the other is in the next row of positions
    numbers = cutlass.Boolean(True)
    at_z, at_y, at_x, inside = result_of(z, y + row // 8, x + row % 8, phase)
    _, _, _, is_other = result_of(z, y + row // 8 + 1, x + row % 8, phase)
    one = at_position(n, at_z, at_y, at_x, {varying})
    other = at_position(n, at_z, at_y + STEP_Y, at_x, {varying})
    for four in cutlass.range_constexpr(cute.size(total) // 4):  # two channels of each
        for i in cutlass.range_constexpr(4 * four, 4 * four + 2):
            channel = first_channel + places[i][1]
            if {is_channel}:
                scale = weight_undo[channel]
                {of_channel}
                value, other_value = unscaled(total[i], undo, scale), unscaled(total[i + 2], undo, scale)
                if inside:
                    numbers = numbers & (value - value == 0.0)
                    store(value, channel, {values}*one)
                if is_other:
                    numbers = numbers & (other_value - other_value == 0.0)
                    store(other_value, channel, {values}*other)
    if not numbers:
        for i in cutlass.range(cute.size(total), unroll=1):
            row, channel = places[i][0], first_channel + places[i][1]
            at_z, at_y, at_x, inside = result_of(z, y + row // 8, x + row % 8, phase)
            if inside & (channel < OUT_CHANNELS):
                {of_channel}
                value = plain(source, weight, phase, n, channel, z, y + row // 8, x + row % 8)
                store(value, channel, {values}*at_position(n, at_z, at_y, at_x, {varying}))

@cute.jit
def plain(
    source: cute.Tensor,
    weight: cute.Tensor,
    phase: cutlass.Constexpr,
    n: cutlass.Int32,
    channel: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
):
    """A sum in whose tile or whose weights there is Inf or NaN, by fp32 arithmetic."""
    total = cutlass.Float32(0)
    for c in cutlass.range(CHANNELS, unroll=1):
        for k in cutlass.range_constexpr(len(TAPS[phase])):
            tap, place = TAPS[phase][k]
            at_z = z + START_Z + place // (HALO_Y * HALO_X)
            at_y, at_x = y + START_Y + place // HALO_X % HALO_Y, x + START_X + place % HALO_X
            inside = (at_z >= 0) & (at_z < SIZE_Z) & (at_y >= 0) & (at_y < SIZE_Y) & (at_x >= 0) & (at_x < SIZE_X)
            if inside:
                total += source[n, c, at_z, at_y, at_x] * weight[channel, c, tap]
    return total
'''

KERNEL = """
@cute.kernel
def {name}_kernel(
    mma: cute.TiledMma,
    parts: cute.Tensor,
    works: cutlass.Int32,
    {parameters}
):
    tidx, _, _ = cute.arch.thread_idx()
    block, tile, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cutlass.memory.SmemAllocator()
    barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    peaks = smem.allocate_tensor(cutlass.Int32, cute.make_layout(THREADS // 32), 16)
    stages = smem.allocate_tensor(cutlass.Float16, cute.make_layout((8, TILE_N, 2 * STEPS, PARTS, STAGES)), 128)
    halo = smem.allocate_tensor(cutlass.Float16, cute.make_layout((8, HALO, EIGHTS, PARTS)), 128)
    pipe = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS // 32),
        tx_count=2 * PIECE_VALUES,
    )
    copy = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float16, num_bits_per_copy=16 * PIECE_VALUES)
    filling = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
    reading = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    {start}
    thread = mma.get_slice(tidx % 128)
    places = thread.partition_C(cute.make_identity_tensor((64, TILE_N)))
    total = cute.make_rmem_tensor(places.shape, cutlass.Float32)
    {states}
    group = warp // 4  # the warpgroup's place in the tile
    own_x, own_y = group % (TILE_X // 8) * 8, group // (TILE_X // 8) % (TILE_Y // 8) * 8
    own_z = group // (TILE_X // 8 * (TILE_Y // 8))
    corner = (own_z * HALO_Y + own_y) * HALO_X + own_x
    for work in cutlass.range(block, works, blocks, unroll=1):
        n, z, y, x = tile_of(work)
        undo = load_halo(source, halo, peaks, tidx, n, z + START_Z, y + START_Y, x + START_X)
        {again}
        for phase in cutlass.range_constexpr(len(TAPS)):
            total.fill(0.0)
            for step in cutlass.range(ROUNDS, unroll=1):
                for piece in cutlass.range_constexpr(PIECES[phase]):
                    {piece}
            finish(total, places, undo, phase, n, z + own_z, y + own_y, x + own_x, tile * TILE_N, {tensors})
"""

FILL = """
pipe.producer_acquire(filling)
full = pipe.producer_get_barrier(filling)
with cute.arch.elect_one():
    given = cute.group_modes(parts[None, None, None, None, {number}, tile], 0, 4)
    kept = cute.group_modes(stages[None, None, None, None, filling.index], 0, 4)
    cute.copy(copy, given, kept, mbar_ptr=full)
"""

FILL_ONCE = """
if warp == 0:
    for piece in cutlass.range(ALL_PIECES, unroll=1):
        {fill}
        filling.advance()
"""

FILL_FIRST = """
left = ALL_PIECES * cute.ceil_div(works - block, blocks)  # pieces to copy, for all of the block's tiles
next_piece = cutlass.Int32(0)
for _ in cutlass.range_constexpr(STAGES - 1):
    {fill_next}
"""

FILL_NEXT = """
if (warp == 0) & (left > 0):
    {fill}
filling.advance()
next_piece = (next_piece + 1) % ALL_PIECES
left -= 1
"""

# In the loop itself, for what it sets in `mma` would not reach the next turn from a function.
PIECE = """
pipe.consumer_wait(reading)
first, last = piece * STEPS, min(piece * STEPS + STEPS, OF_A_ROUND[phase])
warpgroup.fence()
mma.set(warpgroup.Field.ACCUMULATE, False)
# The small terms first, while the sum is small as well. low * low is below 2^-22 of high * high.
for k in cutlass.range_constexpr(first, last):
    for a_part, b_part in ((1, 0), (0, 1)):
        a = positions_of(thread, mma, halo, corner, step * ROUND, phase, k, a_part)
        b = weights_of(thread, mma, stages, reading.index, k - first, b_part)
        cute.gemm(mma, partial, a, b, partial)
        mma.set(warpgroup.Field.ACCUMULATE, True)
for k in cutlass.range_constexpr(first, last):
    a = positions_of(thread, mma, halo, corner, step * ROUND, phase, k, 0)
    b = weights_of(thread, mma, stages, reading.index, k - first, 0)
    cute.gemm(mma, partial, a, b, partial)
warpgroup.commit_group()
warpgroup.wait_group(0)
{release}
reading.advance()
total.store(total.load() + partial.load())
{fill_next}
"""

PARTIAL = "partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)"

ONE_PART = """
pipe.consumer_wait(reading)
first, last = piece * STEPS, min(piece * STEPS + STEPS, OF_A_ROUND[phase])
warpgroup.fence()
for k in cutlass.range_constexpr(first, last):
    a = positions_of(thread, mma, halo, corner, step * ROUND, phase, k, 0)
    b = weights_of(thread, mma, stages, reading.index, k - first, 0)
    cute.gemm(mma, total, a, b, total)
warpgroup.commit_group()
warpgroup.wait_group(0)
{release}
reading.advance()
{fill_next}
"""

ADDING = "mma.set(warpgroup.Field.ACCUMULATE, True)"

AGAIN = "reading = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)  # all are there"
RELEASE = "pipe.consumer_release(reading)"

HOST = """
work = cute.make_ptr(cutlass.Float32, mWork.iterator.toint(), cute.AddressSpace.gmem, assumed_align=16)
parts = cute.make_tensor(
    cute.recast_ptr(work, dtype=cutlass.Float16),
    cute.make_layout((8, TILE_N, 2 * STEPS, PARTS, ALL_PIECES, CHANNEL_TILES)),
)
channels = TILE_N * CHANNEL_TILES
weight_undo = cute.make_tensor(work + PIECE_VALUES // 2 * ALL_PIECES * CHANNEL_TILES, cute.make_layout(channels))
split_weight(weight, parts, weight_undo).launch(grid=[channels, 1, 1], block=[128, 1, 1], stream=stream)
mma = hopper_helpers.make_trivial_tiled_mma(
    cutlass.Float16,
    cutlass.Float16,
    OperandMajorMode.K,
    OperandMajorMode.K,
    cutlass.Float32,
    (1, 1, 1),
    tiler_mn=(64, TILE_N),
)
tiles = -(-POSITIONS_Z // TILE_Z) * -(-POSITIONS_Y // TILE_Y) * -(-POSITIONS_X // TILE_X)
works = BATCH * tiles
{name}_kernel(mma, parts, works, {tensors}).launch(
    grid=[min(works, -(-BLOCKS // CHANNEL_TILES)), CHANNEL_TILES, 1],
    block=[THREADS, 1, 1],
    min_blocks_per_mp=BLOCKS_PER_MP,
    preferred_smem_carveout=100,  # percent
    stream=stream,
)
"""
