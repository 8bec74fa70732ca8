"""The product on Hopper's tensor cores: text of a candidate file.

One warp loads tiles of both factors by TMA into stages of shared memory, shared by the blocks of a cluster; one to four
warpgroups multiply them by wgmma. What a stage of parts of fp32 values adds up goes into fp32 registers before the
next: tensor cores truncate whatever they add to a large sum.
"""

from __future__ import annotations

from .product_engine import Engine, Sums, placed
from .product_finish import STAGED_ONCE_MORE, STAGED_TILE

IMPORTS = """
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.tensor_utils import LayoutEnum
from cutlass.utils import hopper_helpers

CONSUMERS = 2 * TILE_M  # threads: a warpgroup for 64 rows of a tile
STAGE_BYTES = PARTS * {bytes} * TILE_K * (TILE_M + TILE_N)
"""

KERNEL = """
@cute.kernel
def {name}_kernel(
    load_left: cute.CopyAtom,
    left_tiles: cute.Tensor,
    load_right: cute.CopyAtom,
    right_tiles: cute.Tensor,
    left_layout: cute.ComposedLayout,
    right_layout: cute.ComposedLayout,
    mma: cute.TiledMma,
    down: cutlass.Int32,
    across: cutlass.Int32,
    works: cutlass.Int32,
    {parameters}
):
    tidx, _, _ = cute.arch.thread_idx()
    _, _, cluster = cute.arch.block_idx()
    _, _, clusters = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    my_row, my_column = rank % CLUSTER_M, rank // CLUSTER_M
    blocks = cute.make_layout((CLUSTER_M, CLUSTER_N, 1))
    left_peers = cute.make_layout_image_mask(blocks, blocks.get_flat_coord(rank), mode=1)
    right_peers = cute.make_layout_image_mask(blocks, blocks.get_flat_coord(rank), mode=0)

    smem = cutlass.memory.SmemAllocator()
    barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    left_stages = smem.allocate_tensor({factor}, left_layout.outer, 1024, swizzle=left_layout.inner)
    right_stages = smem.allocate_tensor({factor}, right_layout.outer, 1024, swizzle=right_layout.inner)
    staging_layout = cute.make_layout((16, 32, CONSUMERS // 32), stride=(40, 1, 640))
    staging = smem.allocate_tensor(cutlass.Float32, staging_layout, 128)
    {memory}
    readers = (CLUSTER_M + CLUSTER_N - 1) * CONSUMERS // 32  # warps, in every block that gets a tile from this one
    pipe = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, readers),
        tx_count=STAGE_BYTES,
        cta_layout_vmnk=cute.make_layout((1, CLUSTER_M, CLUSTER_N, 1)),
    )
    chunks = -(-DEPTH // TILE_K)
    share = -(-chunks // SPLITS)

    if warp >= CONSUMERS // 32:
        cute.arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp == CONSUMERS // 32:
            to_left, from_left = cpasync.tma_partition(
                load_left,
                my_column,
                cute.make_layout(CLUSTER_N),
                cute.group_modes(left_stages, 0, 2),
                cute.group_modes(cute.local_tile(left_tiles, (TILE_M, TILE_K), (None, None, None)), 0, 2),
            )
            to_right, from_right = cpasync.tma_partition(
                load_right,
                my_row,
                cute.make_layout(CLUSTER_M),
                cute.group_modes(right_stages, 0, 2),
                cute.group_modes(cute.local_tile(right_tiles, (TILE_N, TILE_K), (None, None, None)), 0, 2),
            )
            filling = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            for work in cutlass.range(cluster, works, clusters, unroll=1):
                below, beside, z = place(work, down, across)
                m, n, batch = below * CLUSTER_M + my_row, beside * CLUSTER_N + my_column, z // SPLITS
                start = z % SPLITS * share
                end = cutlass.min(start + share, chunks)
                {skip}
                for chunk in cutlass.range(start, end, unroll=1):
                    pipe.producer_acquire(filling)
                    full = pipe.producer_get_barrier(filling)
                    for part in cutlass.range_constexpr(PARTS):
                        source, target = PARTS * batch + part, PARTS * filling.index + part
                        a, b = from_left[None, m, chunk, source], from_right[None, n, chunk, source]
                        cute.copy(load_left, a, to_left[None, target], tma_bar_ptr=full, mcast_mask=left_peers)
                        cute.copy(load_right, b, to_right[None, target], tma_bar_ptr=full, mcast_mask=right_peers)
                    pipe.producer_commit(filling)
                    filling.advance()
            pipe.producer_tail(filling)  # the block stays while others still read what it sends
    else:
        cute.arch.setmaxregister_increase(CONSUMER_REGISTERS)
        thread = mma.get_slice(tidx)
        left_fragment = mma.make_fragment_A(thread.partition_A({left_fed}))
        right_fragment = mma.make_fragment_B(thread.partition_B({right_fed}))
        places = thread.partition_C(cute.make_identity_tensor((TILE_M, TILE_N)))
        corner = staging[None, None, warp]
        total = cute.make_rmem_tensor(places.shape, cutlass.Float32)
        reading = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        {states}
        for work in cutlass.range(cluster, works, clusters, unroll=1):
            below, beside, z = place(work, down, across)
            first_row, first_column = (below * CLUSTER_M + my_row) * TILE_M, (beside * CLUSTER_N + my_column) * TILE_N
            start = z % SPLITS * share
            end = cutlass.min(start + share, chunks)
            {skip}
            {sums}
            {finish}
"""

SPLIT_STATES = "partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)"
# In the loop itself, for what it sets in `mma` would not reach the next turn from a function.
_PARTS = """
pipe.consumer_wait(reading)
high, low = 2 * reading.index, 2 * reading.index + 1
warpgroup.fence()
mma.set(warpgroup.Field.ACCUMULATE, False)
# The small terms first, while the sum is small as well. low * low is below 2^-22 of high * high.
for k in cutlass.range_constexpr(TILE_K // 16):
    a, b = left_fragment[None, None, k, low], right_fragment[None, None, k, high]
    cute.gemm(mma, {into}, a, b, {into})
    mma.set(warpgroup.Field.ACCUMULATE, True)
    a, b = left_fragment[None, None, k, high], right_fragment[None, None, k, low]
    cute.gemm(mma, {into}, a, b, {into})
for k in cutlass.range_constexpr(TILE_K // 16):
    a, b = left_fragment[None, None, k, high], right_fragment[None, None, k, high]
    cute.gemm(mma, {into}, a, b, {into})
warpgroup.commit_group()
warpgroup.wait_group(0)
pipe.consumer_release(reading)
reading.advance()
"""

_LOOP = """
if cutlass.const_expr(chunks == 1):
    {once}
else:
    total.fill(0.0)
    for chunk in cutlass.range(start, end, unroll=1):
        {again}
        total.store(total.load() + partial.load())
"""
SPLIT_LOOP = placed(
    placed(_LOOP, "{once}", _PARTS.replace("{into}", "total")), "{again}", _PARTS.replace("{into}", "partial")
)

HALF_STATES = "released = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)"
HALF_LOOP = """
pipe.consumer_wait(reading)
warpgroup.fence()
mma.set(warpgroup.Field.ACCUMULATE, False)
for k in cutlass.range_constexpr(TILE_K // 16):
    a, b = left_fragment[None, None, k, reading.index], right_fragment[None, None, k, reading.index]
    cute.gemm(mma, total, a, b, total)
    mma.set(warpgroup.Field.ACCUMULATE, True)
warpgroup.commit_group()
reading.advance()
for chunk in cutlass.range(start + 1, end, unroll=1):
    pipe.consumer_wait(reading)
    warpgroup.fence()
    for k in cutlass.range_constexpr(TILE_K // 16):
        a, b = left_fragment[None, None, k, reading.index], right_fragment[None, None, k, reading.index]
        cute.gemm(mma, total, a, b, total)
    warpgroup.commit_group()
    reading.advance()
    warpgroup.wait_group(1)  # the stage before this one has been read
    pipe.consumer_release(released)
    released.advance()
warpgroup.wait_group(0)
pipe.consumer_release(released)
released.advance()
"""

HOST = """
left_major, right_major = LayoutEnum.{left_major}, LayoutEnum.{right_major}
mma = hopper_helpers.make_trivial_tiled_mma(
    {operand},
    {operand},
    LayoutEnum.{left_fed_major}.mma_major_mode(),
    LayoutEnum.{right_fed_major}.mma_major_mode(),
    cutlass.Float32,
    (TILE_M // 64, 1, 1),
    tiler_mn=(64, TILE_N),
)
tile = (TILE_M, TILE_N, TILE_K)
left_layout = hopper_helpers.make_smem_layout_a(left_major, tile, {factor}, PARTS * STAGES)
right_layout = hopper_helpers.make_smem_layout_b(right_major, tile, {factor}, PARTS * STAGES)
load_left, left_tiles = tma_loads(left_parts, left_layout, TILE_M, CLUSTER_N)
load_right, right_tiles = tma_loads(right_parts, right_layout, TILE_N, CLUSTER_M)
down = cute.ceil_div(rows, TILE_M * CLUSTER_M)
across = cute.ceil_div(columns, TILE_N * CLUSTER_N)
works = down * across * batches * SPLITS
clusters = cutlass.min(works, BLOCKS // (CLUSTER_M * CLUSTER_N))
{name}_kernel(
    load_left,
    left_tiles,
    load_right,
    right_tiles,
    left_layout,
    right_layout,
    mma,
    down,
    across,
    works,
    {tensors}
).launch(
    grid=[CLUSTER_M, CLUSTER_N, clusters],
    block=[CONSUMERS + 128, 1, 1],
    cluster=[CLUSTER_M, CLUSTER_N, 1],
    min_blocks_per_mp=BLOCKS_PER_MP,
    preferred_smem_carveout=100,  # percent
    stream=stream,
)
"""

TMA = '''
def tma_loads(parts, layout, lines, receivers):
    """The TMA copy of a tile of `lines` of one part to `receivers` blocks, and the tensor that it reads."""
    op = cpasync.CopyBulkTensorTileG2SMulticastOp() if receivers > 1 else cpasync.CopyBulkTensorTileG2SOp()
    one = cute.slice_(layout, (None, None, 0))
    return cpasync.make_tiled_tma_atom(op, parts, one, (lines, TILE_K), num_multicast=receivers)
'''

# Of all blocks of a cluster alike. A depth of one chunk goes without.
UPPER = """
if cutlass.const_expr(chunks > 1):
    if (beside + 1) * CLUSTER_N * TILE_N - 1 - below * CLUSTER_M * TILE_M < DIAGONAL:
        end = start
"""
LOWER = """
if cutlass.const_expr(chunks > 1):
    if beside * CLUSTER_N * TILE_N - (below + 1) * CLUSTER_M * TILE_M + 1 > DIAGONAL:
        end = start
"""

HOPPER = Engine(
    IMPORTS,
    KERNEL,
    Sums(SPLIT_STATES, SPLIT_LOOP, ""),
    Sums(HALF_STATES, HALF_LOOP, ""),
    TMA,
    HOST,
    STAGED_TILE,
    STAGED_ONCE_MORE,
    through="corner, warp",
    run=4,
    whole_stages=False,
    least=(9, 0),
    upper=UPPER,
    lower=LOWER,
)
