"""Attention of fp32 heads of many columns on Hopper's tensor cores, in one kernel: text of a candidate file.

A block has 64 queries and goes through a head's keys a tile at a time. Each of two warpgroups sums the scores of half
of the tile's keys in registers. Their weights go to shared memory as fp16 parts, and from there each warpgroup takes
them to half of the columns of the result, 128 at a time: no score and no weight ever leaves the block. One warp loads
parts of keys and of values by TMA, each tile once for all blocks of a cluster; two warps split the queries on the way.
"""

from __future__ import annotations

IMPORTS = """
from cutlass import pipeline
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.tensor_utils import LayoutEnum
from cutlass.utils import hopper_helpers

TILE_QUERIES = 64
CONSUMERS = 256  # threads: two warpgroups
SPLITTERS = 64  # threads that split queries
ROWS = 2  # of scores, of which a thread has some
PIECES = TILE_KEYS // 256  # of 128 keys, that a warpgroup has of a tile
STEPS = -(-DEPTH // 32)
CHUNKS = TILE_KEYS // 32  # of a tile's keys, as values are loaded;
ALL_CHUNKS = -(-KEYS // SUMMED) * (SUMMED // 32)  # of a head; keys past its end have no weight
PANELS = -(-WIDTH // 256)  # of columns, half of them for each warpgroup
"""

KERNEL = '''
def send(load, tiles, slots, place, ring, filling):
    """This block's share of both parts of a tile into the next slot of all blocks, once that has been read in each."""
    down, across, batch = place
    ring.producer_acquire(filling)
    full = ring.producer_get_barrier(filling)
    peers = cutlass.Int16((1 << CLUSTER) - 1)
    for part in range(2):
        tile, slot = tiles[None, down, across, 2 * batch + part], slots[None, 2 * filling.index + part]
        cute.copy(load, tile, slot, tma_bar_ptr=full, mcast_mask=peers)
    ring.producer_commit(filling)

def parted(load, tiles, shape, slots, rank):
    """Where TMA finds a matrix's tiles, and where it puts them."""
    tiled = cute.group_modes(cute.local_tile(tiles, shape, (None, None, None)), 0, 2)
    return cpasync.tma_partition(load, rank, cute.make_layout(CLUSTER), cute.group_modes(slots, 0, 2), tiled)

def rowwise(tensor):
    """A thread's part of a tile as (values of two rows, 1, groups of 8 columns)."""
    layout = cute.make_layout(((2, 2), 1, cute.size(tensor) // 4), stride=((1, 2), 0, 4))
    return cute.make_tensor(tensor.iterator, layout)

@cute.kernel
def {name}_kernel(
    load_keys: cute.CopyAtom,
    key_tiles: cute.Tensor,
    load_values: cute.CopyAtom,
    value_tiles: cute.Tensor,
    query_layout: cute.ComposedLayout,
    key_layout: cute.ComposedLayout,
    value_layout: cute.ComposedLayout,
    weight_layout: cute.ComposedLayout,
    score_mma: cute.TiledMma,
    value_mma: cute.TiledMma,
    result: cute.Tensor,
    down: cutlass.Int32,
    {split_parameters}
    {parameters}
):
    tidx, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    work = block // CLUSTER
    batch = work // down
    past_query = (down - work % down) * CLUSTER * TILE_QUERIES  # the cluster's
    first_query = past_query - (CLUSTER - rank) * TILE_QUERIES
    tiles = cutlass.Int32(cute.ceil_div(KEYS, TILE_KEYS))
    {causal}

    smem = cutlass.memory.SmemAllocator()
    barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    query_barriers = smem.allocate_array(cutlass.Int64, 4)
    own_queries = smem.allocate_tensor({operand}, query_layout.outer, 1024, swizzle=query_layout.inner)
    own_weights = smem.allocate_tensor({operand}, weight_layout.outer, 1024, swizzle=weight_layout.inner)
    key_ring = smem.allocate_tensor({operand}, key_layout.outer, 1024, swizzle=key_layout.inner)
    values_at = cute.recast_ptr(key_ring.iterator, value_layout.inner)
    value_ring = cute.make_tensor(values_at, value_layout.outer)  # of the same slots
    query_undo = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE_QUERIES, 2)), 16)
    shared = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE_QUERIES, 4)), 16)
    query_pipe = pipeline.PipelineAsync.create(
        barrier_storage=query_barriers,
        num_stages=2,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, SPLITTERS),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMERS // 32),
    )
    # Slots are in turn for one warpgroup and for the other.
    ring = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CLUSTER * CONSUMERS // 2 // 32),
        tx_count=2 * 2 * 128 * 32,
        cta_layout_vmnk=cute.make_layout((1, CLUSTER, 1, 1)),
    )

    if warp >= CONSUMERS // 32:
        cute.arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp == CONSUMERS // 32:
            to_keys, from_keys = parted(load_keys, key_tiles, (128, 32), key_ring, rank)
            to_values, from_values = parted(load_values, value_tiles, (128, 32), value_ring, rank)
            filling = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            for tile in cutlass.range(tiles, unroll=1):
                for step in cutlass.range(STEPS, unroll=1):
                    for piece in cutlass.range_constexpr(PIECES):
                        for half in cutlass.range_constexpr(2):
                            lines = (2 * tile + half) * PIECES + piece
                            send(load_keys, from_keys, to_keys, (lines, step, batch), ring, filling)
                            filling.advance()
                for columns in cutlass.range(PANELS, unroll=1):
                    for chunk in cutlass.range(cutlass.min(CHUNKS, ALL_CHUNKS - tile * CHUNKS), unroll=1):
                        for half in cutlass.range_constexpr(2):
                            place = (2 * columns + half, tile * CHUNKS + chunk, batch)
                            send(load_values, from_values, to_values, place, ring, filling)
                            filling.advance()
            ring.producer_tail(filling)  # the block stays while others still read what it sends
        elif warp < CONSUMERS // 32 + 1 + SPLITTERS // 32:
            values = cute.make_rmem_tensor((4, 8), cutlass.Float32)
            filling = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
            fetch_queries(exact_queries[None, None, batch], values, first_query, 0)
            for number in cutlass.range(tiles * STEPS, unroll=1):
                query_pipe.producer_acquire(filling)
                split_queries(values, own_queries, query_undo, filling.index)
                cute.arch.fence_proxy("async.shared", space="cta")  # wgmma sees what was written
                query_pipe.producer_commit(filling)
                filling.advance()
                fetch_queries(exact_queries[None, None, batch], values, first_query, (number + 1) % STEPS)
    else:
        cute.arch.setmaxregister_increase(CONSUMER_REGISTERS)
        group = warp // 4
        thread, value_thread = score_mma.get_slice(tidx % 128), value_mma.get_slice(tidx % 128)
        query_part = score_mma.make_fragment_A(thread.partition_A(own_queries))
        key_part = score_mma.make_fragment_B(thread.partition_B(key_ring))
        weight_part = value_mma.make_fragment_A(value_thread.partition_A(own_weights))
        value_part = value_mma.make_fragment_B(value_thread.partition_B(value_ring))
        all_places = cute.make_identity_tensor((TILE_QUERIES, TILE_KEYS))
        all_ends = cute.make_identity_tensor((TILE_QUERIES, 256 * PANELS))
        places = thread.partition_C(cute.local_tile(all_places, (TILE_QUERIES, 128), (0, 0)))
        line, other_line = places[0][0], places[2][0]
        all_scores = cute.make_rmem_tensor((cute.size(places), PIECES), cutlass.Float32)
        partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)
        total = cute.make_rmem_tensor(places.shape, cutlass.Float32)
        peaks = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        sums = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        fading = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        wholes = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        factors = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
        peaks.fill(-cutlass.Float32.inf)
        sums.fill(0.0)
        reading = pipeline.PipelineState(STAGES, cutlass.Int32(0), group, cutlass.Int32(0))
        querying = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
        for tile in cutlass.range(tiles, unroll=1):
            first_key = tile * TILE_KEYS
            all_scores.fill(0.0)
            for step in cutlass.range(STEPS, unroll=1):
                query_pipe.consumer_wait(querying)
                for piece in cutlass.range_constexpr(PIECES):
                    ring.consumer_wait(reading)
                    high, low = 2 * reading.index, 2 * reading.index + 1
                    query_high, query_low = 2 * querying.index, 2 * querying.index + 1
                    warpgroup.fence()
                    score_mma.set(warpgroup.Field.ACCUMULATE, False)
                    # The small terms first, while the sum is small as well. low * low is below 2^-22 of high * high.
                    for k in cutlass.range_constexpr(2):
                        a, b = query_part[None, None, k, query_low], key_part[None, None, k, high]
                        cute.gemm(score_mma, partial, a, b, partial)
                        score_mma.set(warpgroup.Field.ACCUMULATE, True)
                        a, b = query_part[None, None, k, query_high], key_part[None, None, k, low]
                        cute.gemm(score_mma, partial, a, b, partial)
                    for k in cutlass.range_constexpr(2):
                        a, b = query_part[None, None, k, query_high], key_part[None, None, k, high]
                        cute.gemm(score_mma, partial, a, b, partial)
                    warpgroup.commit_group()
                    warpgroup.wait_group(0)
                    ring.consumer_release(reading)
                    reading.advance()
                    reading.advance()
                    for row in cutlass.range_constexpr(ROWS):
                        own = rowwise(all_scores[None, piece])[(None, row), 0, None]
                        undo = query_undo[line if row == 0 else other_line, querying.index]
                        own.store(own.load() + rowwise(partial)[(None, row), 0, None].load() * undo)
                cute.arch.sync_warp()
                if cute.arch.lane_idx() == 0:
                    query_pipe.consumer_release(querying)
                querying.advance()

            for piece in cutlass.range_constexpr(PIECES):
                scores = rowwise(all_scores[None, piece])
                own_keys = cute.local_tile(all_places, (TILE_QUERIES, 128), (0, group * PIECES + piece))
                places = thread.partition_C(own_keys)
                settle(scores, places, first_query, first_key, batch, key_undo, exact_queries, exact_keys)
                {masks}
            into_weights(rowwise(all_scores), line, group, shared, peaks, sums, fading)
            for piece in cutlass.range_constexpr(PIECES):
                own_keys = cute.local_tile(all_places, (TILE_QUERIES, 128), (0, group * PIECES + piece))
                share_weights(all_scores[None, piece], thread.partition_C(own_keys), own_weights)
            share_sums(sums, line, group, shared)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=CONSUMERS)
            for row in cutlass.range_constexpr(ROWS):
                whole = shared[line + 8 * row, 2] + shared[line + 8 * row, 3]
                {safe}
                wholes[row] = whole
                factors[row] = cutlass.Float32(WEIGHT_STEP)
                if tile == tiles - 1:
                    fading[row] = fading[row] / whole
                    factors[row] = WEIGHT_STEP / whole

            done = reading.clone()
            for columns in cutlass.range(PANELS, unroll=1):
                total.fill(0.0)
                chunks = cutlass.min(CHUNKS, ALL_CHUNKS - tile * CHUNKS)
                for first in cutlass.range(0, chunks, SUMMED // 32, unroll=1):
                    for chunk in cutlass.range_constexpr(SUMMED // 32):
                        ring.consumer_wait(reading)
                        high, low = 2 * reading.index, 2 * reading.index + 1
                        weight_high, weight_low = first + chunk, CHUNKS + first + chunk
                        warpgroup.fence()
                        value_mma.set(warpgroup.Field.ACCUMULATE, chunk > 0)
                        for k in cutlass.range_constexpr(2):
                            a, b = weight_part[None, None, k, weight_low], value_part[None, None, k, high]
                            cute.gemm(value_mma, partial, a, b, partial)
                            value_mma.set(warpgroup.Field.ACCUMULATE, True)
                            a, b = weight_part[None, None, k, weight_high], value_part[None, None, k, low]
                            cute.gemm(value_mma, partial, a, b, partial)
                        for k in cutlass.range_constexpr(2):
                            a, b = weight_part[None, None, k, weight_high], value_part[None, None, k, high]
                            cute.gemm(value_mma, partial, a, b, partial)
                        warpgroup.commit_group()
                        reading.advance()
                        reading.advance()
                        if cutlass.const_expr(chunk > 0):
                            warpgroup.wait_group(1)
                            ring.consumer_release(done)
                            done.advance()
                            done.advance()
                    warpgroup.wait_group(0)
                    ring.consumer_release(done)
                    done.advance()
                    done.advance()
                    total.store(total.load() + partial.load())
                own_ends = cute.local_tile(all_ends, (TILE_QUERIES, 128), (0, 2 * columns + group))
                ends = value_thread.partition_C(own_ends)
                {finish}
'''

FINISH = """
fade(rowwise(total), factors)
unscale_columns(total, ends, value_undo[None, tile, batch])
if cutlass.const_expr(KEYS > TILE_KEYS):
    if tile > 0:
        add_earlier(total, ends, result[None, None, batch], first_query, fading)
    if tile < tiles - 1:
        store_pairs(total, ends, result[None, None, batch], first_query)
if tile == tiles - 1:
    store_checked(total, ends, wholes, result, first_query, batch, exact_queries, exact_keys, exact_values, {masks})
"""

CAUSAL = """
seen = cutlass.max(past_query - 1 + DIAGONAL + TILE_KEYS, TILE_KEYS) // TILE_KEYS
tiles = cutlass.min(tiles, seen)  # of all blocks of the cluster alike
"""
