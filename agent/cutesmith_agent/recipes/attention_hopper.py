"""Attention on Hopper's tensor cores: text of a candidate file.

One warp loads a tile of queries, then tiles of keys and of values in turn, by TMA into two rings of shared memory. Each
of two warpgroups has 64 of the queries: scores by wgmma from shared memory, weights from them in registers, which are
the left factor of the next wgmma. While one warpgroup is at its softmax, the other has the tensor cores.
"""

from __future__ import annotations

IMPORTS = """
from cutlass import pipeline
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.tensor_utils import LayoutEnum
from cutlass.utils import hopper_helpers

CONSUMERS = 2 * TILE_QUERIES  # threads: a warpgroup for 64 queries
ROWS = 2  # of scores, of which a thread has some
"""

KERNEL = '''
def ring_of(barriers, slots, width, lines):
    """A pipeline of tiles from the warp that loads to all that multiply."""
    return pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=slots,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMERS // 32),
        tx_count=PARTS * 2 * width * lines,
        cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
    )

def parted(load, tiles, shape, stages):
    """Where TMA finds a matrix's tiles, and where it puts them."""
    tiled = cute.group_modes(cute.local_tile(tiles, shape, (None, None, None)), 0, 2)
    return cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(stages, 0, 2), tiled)

def send(load, tiles, slots, place, pipe, filling):
    """Loads the parts of a tile into the next slot, once that has been read."""
    down, across, batch = place
    pipe.producer_acquire(filling)
    full = pipe.producer_get_barrier(filling)
    for part in range(PARTS):
        tile, slot = tiles[None, down, across, PARTS * batch + part], slots[None, PARTS * filling.index + part]
        cute.copy(load, tile, slot, tma_bar_ptr=full)
    pipe.producer_commit(filling)

def rowwise(tensor):
    """A thread's part of a tile as (values of two rows, 1, groups of 8 columns)."""
    layout = cute.make_layout(((2, 2), 1, cute.size(tensor) // 4), stride=((1, 2), 0, 4))
    return cute.make_tensor(tensor.iterator, layout)

def as_left_factor(weights):
    """Weights as wgmma takes a left factor from registers: two neighbouring groups of 8 keys are 16 of its depth."""
    layout = cute.make_layout(((2, 2, 2), 1, cute.size(weights) // 8), stride=((1, 2, 4), 0, 8))
    return cute.make_tensor(weights.iterator, layout)

@cute.kernel
def {name}_kernel(
    load_queries: cute.CopyAtom,
    query_tiles: cute.Tensor,
    load_keys: cute.CopyAtom,
    key_tiles: cute.Tensor,
    load_values: cute.CopyAtom,
    value_tiles: cute.Tensor,
    query_layout: cute.ComposedLayout,
    key_layout: cute.ComposedLayout,
    value_layout: cute.ComposedLayout,
    score_mma: cute.TiledMma,
    value_mma: cute.TiledMma,
    result: cute.Tensor,
    down: cutlass.Int32,
    {split_parameters}
    {parameters}
):
    tidx, _, _ = cute.arch.thread_idx()
    work, _, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    batch = work // down
    block = down - 1 - work % down
    first_query = block * TILE_QUERIES
    tiles = cute.ceil_div(KEYS, TILE_KEYS)
    {causal}

    smem = cutlass.memory.SmemAllocator()
    query_barriers = smem.allocate_array(cutlass.Int64, 2)
    key_barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    value_barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    own_queries = smem.allocate_tensor({operand}, query_layout.outer, 1024, swizzle=query_layout.inner)
    key_ring = smem.allocate_tensor({operand}, key_layout.outer, 1024, swizzle=key_layout.inner)
    value_ring = smem.allocate_tensor({operand}, value_layout.outer, 1024, swizzle=value_layout.inner)
    query_pipe = ring_of(query_barriers, 1, DEPTH, TILE_QUERIES)
    key_pipe = ring_of(key_barriers, STAGES, DEPTH, TILE_KEYS)
    value_pipe = ring_of(value_barriers, STAGES, WIDTH, TILE_KEYS)

    if warp >= CONSUMERS // 32:
        cute.arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp == CONSUMERS // 32:
            to_queries, from_queries = parted(load_queries, query_tiles, (TILE_QUERIES, DEPTH), own_queries)
            to_keys, from_keys = parted(load_keys, key_tiles, (TILE_KEYS, DEPTH), key_ring)
            to_values, from_values = parted(load_values, value_tiles, (WIDTH, TILE_KEYS), value_ring)
            once = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            filling = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            send(load_queries, from_queries, to_queries, (block, 0, batch), query_pipe, once)
            for tile in cutlass.range(tiles, unroll=1):
                send(load_keys, from_keys, to_keys, (tile, 0, {key_batch}), key_pipe, filling)
                send(load_values, from_values, to_values, (0, tile, {value_batch}), value_pipe, filling)
                filling.advance()
    else:
        cute.arch.setmaxregister_increase(CONSUMER_REGISTERS)
        thread, value_thread = score_mma.get_slice(tidx), value_mma.get_slice(tidx)
        query_part = score_mma.make_fragment_A(thread.partition_A(own_queries))
        key_part = score_mma.make_fragment_B(thread.partition_B(key_ring))
        value_part = value_mma.make_fragment_B(value_thread.partition_B(value_ring))
        places = thread.partition_C(cute.make_identity_tensor((TILE_QUERIES, TILE_KEYS)))
        products = cute.make_rmem_tensor(places.shape, cutlass.Float32)
        scores = rowwise(products)
        weights = cute.make_rmem_tensor(scores.shape, {operand})
        as_factor = as_left_factor(weights)
        ends = value_thread.partition_C(cute.make_identity_tensor((TILE_QUERIES, WIDTH)))
        means = cute.make_rmem_tensor(ends.shape, cutlass.Float32)
        total = rowwise(means)
        peaks = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        sums = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        fading = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        total.fill(0.0)
        peaks.fill(-cutlass.Float32.inf)
        sums.fill(0.0)
        {states}
        query_pipe.consumer_wait(pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1))
        reading = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        {loop}

        for row in cutlass.range_constexpr(ROWS):
            whole = cute.arch.warp_reduction(sums[row], lambda one, other: one + other, threads_in_group=4)
            {safe}
            sums[row] = whole
            fading[row] = WEIGHT_STEP / whole
        fade(total, fading)
        {finish}
'''

HOST = """
def tma_load(matrix, layout, shape):
    return cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), matrix, cute.slice_(layout, (None, None, 0)), shape
    )

row, column = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
across = (TILE_QUERIES // 64, 1, 1)
score_mma = hopper_helpers.make_trivial_tiled_mma(
    {operand}, {operand}, row.mma_major_mode(), row.mma_major_mode(), cutlass.Float32, across, (64, TILE_KEYS)
)
value_mma = hopper_helpers.make_trivial_tiled_mma(
    {operand},
    {operand},
    row.mma_major_mode(),
    column.mma_major_mode(),
    cutlass.Float32,
    across,
    (64, WIDTH),
    warpgroup.OperandSource.RMEM,
)
of_scores, of_values = (TILE_QUERIES, TILE_KEYS, DEPTH), (TILE_QUERIES, WIDTH, TILE_KEYS)
query_layout = hopper_helpers.make_smem_layout_a(row, of_scores, {operand}, PARTS)
key_layout = hopper_helpers.make_smem_layout_b(row, of_scores, {operand}, PARTS * STAGES)
value_layout = hopper_helpers.make_smem_layout_b(column, of_values, {operand}, PARTS * STAGES)
turned = cute.make_tensor({values}.iterator, cute.select({values}.layout, mode=[1, 0, 2]))
load_queries, query_tiles = tma_load({queries}, query_layout, (TILE_QUERIES, DEPTH))
load_keys, key_tiles = tma_load({keys}, key_layout, (TILE_KEYS, DEPTH))
load_values, value_tiles = tma_load(turned, value_layout, (WIDTH, TILE_KEYS))
down = cute.ceil_div(QUERIES, TILE_QUERIES)
{name}_kernel(
    load_queries,
    query_tiles,
    load_keys,
    key_tiles,
    load_values,
    value_tiles,
    query_layout,
    key_layout,
    value_layout,
    score_mma,
    value_mma,
    result,
    down,
    {split}
    {masks}
).launch(grid=[down * BATCHES, 1, 1], block=[CONSUMERS + 128, 1, 1], stream=stream)
"""

COPIES = """
def copied(matrix, at):
    \"\"\"A copy whose lines start at multiples of 16 bytes, as TMA wants them, and where the next one goes.\"\"\"
    lines, columns, batches = (cute.size(matrix, mode=[k]) for k in range(3))
    buffer = cute.make_ptr(matrix.element_type, at, cute.AddressSpace.gmem, assumed_align=16)
    layout = cute.make_layout((lines, columns, batches), stride=(columns, 1, lines * columns))
    made = cute.make_tensor(buffer, layout)
    pack(matrix, made, False).launch(
        grid=[cute.ceil_div(cute.size(made), 2048), 1, 1], block=[256, 1, 1], stream=stream
    )
    return made, at + 2 * cute.size(made)

if cutlass.const_expr(vector == 1):
    queries, at = copied(queries, mWork.iterator.toint())
    keys, at = copied(keys, at)
    values, at = copied(values, at)
"""
