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
PHASES = STEP_Z * STEP_Y * STEP_X
# Steps of 16 values: an element of the kernel and 16 channels, or two elements and all of eight.
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
    if ROUND == 1:
        start, other = taps[2 * step][1], taps[min(2 * step + 1, len(taps) - 1)][1]
        apart = other - start
    else:
        start, apart = step // len(taps) * 2 * HALO + taps[step % len(taps)][1], HALO
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

KERNEL = """
@cute.kernel
def {name}_kernel(
    mma: cute.TiledMma,
    parts: cute.Tensor,
    works: cutlass.Int32,
    zero: cutlass.Int32,
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
        nothing = work * zero  # the compiler does not know: else it keeps every operand's address in a register
        undo = load_halo(source, halo, peaks, tidx, n, z + START_Z, y + START_Y, x + START_X)
        {begin}
        for phase in cutlass.range_constexpr(PHASES):
            {phase}
        {end}
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
for _ in cutlass.range(ALL_PIECES, unroll=1):
    pipe.consumer_wait(reading)
    reading.advance()
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
{wait}
first, last = piece * STEPS, min(piece * STEPS + STEPS, OF_A_ROUND[phase])
stage = {stage}
warpgroup.fence()
mma.set(warpgroup.Field.ACCUMULATE, False)
# The small terms first, while the sum is small as well. low * low is below 2^-22 of high * high.
for k in cutlass.range_constexpr(first, last):
    for a_part, b_part in ((1, 0), (0, 1)):
        a = positions_of(thread, mma, halo, corner + nothing, step * ROUND, phase, k, a_part)
        b = weights_of(thread, mma, stages, stage + nothing, k - first, b_part)
        cute.gemm(mma, partial, a, b, partial)
        mma.set(warpgroup.Field.ACCUMULATE, True)
for k in cutlass.range_constexpr(first, last):
    a = positions_of(thread, mma, halo, corner + nothing, step * ROUND, phase, k, 0)
    b = weights_of(thread, mma, stages, stage + nothing, k - first, 0)
    cute.gemm(mma, partial, a, b, partial)
warpgroup.commit_group()
warpgroup.wait_group(0)
{release}
total.store(total.load() + partial.load())
{fill_next}
"""

PARTIAL = "partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)"

DIRECT = """
{wait}
first, last = piece * STEPS, min(piece * STEPS + STEPS, OF_A_ROUND[phase])
stage = {stage}
warpgroup.fence()
for k in cutlass.range_constexpr(first, last):
    for a_part, b_part in {products}:
        a = positions_of(thread, mma, halo, corner + nothing, step * ROUND, phase, k, a_part)
        b = weights_of(thread, mma, stages, stage + nothing, k - first, b_part)
        cute.gemm(mma, total, a, b, total)
warpgroup.commit_group()
warpgroup.wait_group(0)
{release}
{fill_next}
"""

PHASE = """
total.fill(0.0)
for step in cutlass.range(ROUNDS, unroll=1):
    for piece in cutlass.range_constexpr(PIECES[phase]):
        {piece}
{finish}
"""

APART = """
for _ in cutlass.range(1 + zero, unroll=1):  # once, which the compiler must not know: it would mix the phases
    {phase}
"""

ADDED_AT_ONCE = """
for _ in cutlass.range(1 + zero, unroll=1):  # once, which the compiler must not know: it would add up at the end only
    {piece}
"""

ADDING = "mma.set(warpgroup.Field.ACCUMULATE, True)"

WAIT = "pipe.consumer_wait(reading)"
RELEASE = """
pipe.consumer_release(reading)
reading.advance()
"""

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
{name}_kernel(mma, parts, works, cutlass.Int32(0), {tensors}).launch(
    grid=[min(works, -(-BLOCKS // CHANNEL_TILES)), CHANNEL_TILES, 1],
    block=[THREADS, 1, 1],
    min_blocks_per_mp=BLOCKS_PER_MP,
    preferred_smem_carveout=100,  # percent
    stream=stream,
)
"""
