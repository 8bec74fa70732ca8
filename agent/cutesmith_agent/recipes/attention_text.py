"""Attention on tensor cores from sm_80 on: text of a candidate file.

A block has a tile of queries in shared memory and goes through tiles of keys and of values, which come by cp.async in
turn into one ring. Each warp has whole rows of scores in its registers, and there turns them into weights: the largest
score so far, and sums that are scaled down whenever it grows.
"""

from __future__ import annotations

IMPORTS = """
from cutlass.cute.nvgpu import LoadCacheMode, cpasync, warp

THREADS = 32 * WARPS
DEPTH_PADDED, WIDTH_PADDED = -(-DEPTH // 16) * 16, -(-WIDTH // 16) * 16
SLOT = TILE_KEYS * max(DEPTH_PADDED, WIDTH_PADDED)  # values of a tile of keys or of values
ROWS = TILE_QUERIES // WARPS // 8  # of scores, of which a thread has some
"""

SOFTMAX = '''
@cute.jit
def into_weights(scores: cute.Tensor, peaks: cute.Tensor, sums: cute.Tensor, fading: cute.Tensor):
    """Scores become exp(score - largest so far). `fading`: what earlier weights are multiplied by now."""
    for row in cutlass.range_constexpr(ROWS):
        own = scores[(None, row % 2), row // 2, None]
        peak = own.load().reduce(cute.ReductionOp.MAX, peaks[row], 0)
        peak = cute.arch.warp_reduction(peak, cute.arch.fmax, threads_in_group=4)
        base = {base}
        if peak == -float("inf"):
            base = cutlass.Float32(0)
        weights = cute.math.exp2({exponents}, fastmath=True)
        own.store(weights)
        fading[row] = cute.math.exp2({exponent}, fastmath=True)
        sums[row] = sums[row] * fading[row] + weights.reduce(cute.ReductionOp.ADD, cutlass.Float32(0), 0)
        peaks[row] = peak
'''

FADE = '''
def fade(total, fading):
    """Each row times a number of its own."""
    for row in range(ROWS):
        own = total[(None, row % 2), row // 2, None]
        own.store(own.load() * fading[row])
'''

MASK = '''
@cute.jit
def with_masks(
    scores: cute.Tensor,
    places: cute.Tensor,
    first_query: cutlass.Int32,
    first_key: cutlass.Int32,
    batch: cutlass.Int32,
    {parameters}
):
    """Products become scores; those past the last key{causal} are -Inf."""
    for i in cutlass.range_constexpr(cute.size(scores)):
        query, key = first_query + places[i][0], first_key + places[i][1]
        {score}
        if {out}:
            scores[i] = -cutlass.Float32.inf
'''

KERNEL = """
@cute.kernel
def {name}_kernel(
    queries: cute.Tensor,
    keys: cute.Tensor,
    values: cute.Tensor,
    result: cute.Tensor,
    copy: cute.CopyAtom,
    mma: cute.TiledMma,
    down: cutlass.Int32,
    {split_parameters}
    {parameters}
):
    tidx, _, _ = cute.arch.thread_idx()
    work, _, _ = cute.arch.block_idx()
    batch = work // down
    first_query = (down - 1 - work % down) * TILE_QUERIES
    tiles = cute.ceil_div(KEYS, TILE_KEYS)
    {causal}

    smem = cutlass.memory.SmemAllocator()
    own = tile_layout(TILE_QUERIES, DEPTH_PADDED, PARTS, TILE_QUERIES * DEPTH_PADDED)
    own_queries = smem.allocate_tensor({operand}, own, 1024, swizzle_of(DEPTH_PADDED))
    ring = smem.allocate_tensor({operand}, cute.make_layout(SLOT * PARTS * STAGES), 1024, swizzle_of(DEPTH_PADDED))
    key_ring = cute.make_tensor(ring.iterator, tile_layout(TILE_KEYS, DEPTH_PADDED, PARTS * STAGES, SLOT))
    values_at = cute.recast_ptr(ring.iterator, swizzle_of(WIDTH_PADDED))
    value_ring = cute.make_tensor(values_at, tile_layout(TILE_KEYS, WIDTH_PADDED, PARTS * STAGES, SLOT))

    thread = mma.get_slice(tidx)
    query_part = mma.make_fragment_A(thread.partition_A(own_queries)[None, None, None, 0])
    key_part = mma.make_fragment_B(thread.partition_B(key_ring)[None, None, None, 0])
    value_part = mma.make_fragment_B(thread.partition_B(turned_panel(values_at, 0))[None, None, None, 0])
    straight = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), {operand})
    across = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), {operand})
    load_query, load_key = cute.make_tiled_copy_A(straight, mma), cute.make_tiled_copy_B(straight, mma)
    load_value = cute.make_tiled_copy_B(across, mma)
    from_queries = load_query.get_slice(tidx).partition_S(own_queries)
    from_keys = load_key.get_slice(tidx).partition_S(key_ring)
    into_query = load_query.get_slice(tidx).retile(query_part)
    into_key = load_key.get_slice(tidx).retile(key_part)
    into_value = load_value.get_slice(tidx).retile(value_part)

    places = thread.partition_C(cute.make_identity_tensor((TILE_QUERIES, TILE_KEYS)))
    scores = cute.make_rmem_tensor(places.shape, cutlass.Float32)
    weights = cute.make_rmem_tensor(places.shape, {operand})
    as_factor = cute.make_tensor(weights.iterator, factor_layout(places.shape))
    ends = thread.partition_C(cute.make_identity_tensor((TILE_QUERIES, WIDTH_PADDED)))
    total = cute.make_rmem_tensor(ends.shape, cutlass.Float32)
    peaks = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
    sums = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
    fading = cute.make_rmem_tensor((ROWS,), cutlass.Float32)
    total.fill(0.0)
    peaks.fill(-cutlass.Float32.inf)
    sums.fill(0.0)
    {states}

    # Tiles of keys and of values follow one another in the ring: keys are at even places, values at odd ones.
    for part in cutlass.range_constexpr(PARTS):
        fetch(copy, queries[None, None, PARTS * batch + part], own_queries[None, None, part], first_query, WIDE_QUERIES)
    for place in cutlass.range_constexpr(STAGES - 1):
        if cutlass.const_expr(place % 2 == 0):
            bring(copy, keys, key_ring, batch, place // 2, tiles, place, WIDE_KEYS)
        else:
            bring(copy, values, value_ring, batch, place // 2, tiles, place, WIDE_VALUES)
        cute.arch.cp_async_commit_group()
    for tile in cutlass.range(tiles, unroll=1):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()  # the keys are there, and the slot that is filled next has been read
        ahead = (2 * tile + STAGES - 1) % STAGES
        if cutlass.const_expr(STAGES % 2 == 1):
            bring(copy, keys, key_ring, batch, tile + STAGES // 2, tiles, ahead, WIDE_KEYS)
        else:
            bring(copy, values, value_ring, batch, tile + STAGES // 2 - 1, tiles, ahead, WIDE_VALUES)
        cute.arch.cp_async_commit_group()
        slot = 2 * tile % STAGES
        first_key = tile * TILE_KEYS
        {scores}
        {masks}
        into_weights(scores, peaks, sums, fading)
        fade(total, fading)

        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()
        ahead = 2 * tile % STAGES
        if cutlass.const_expr(STAGES % 2 == 0):
            bring(copy, keys, key_ring, batch, tile + STAGES // 2, tiles, ahead, WIDE_KEYS)
        else:
            bring(copy, values, value_ring, batch, tile + STAGES // 2, tiles, ahead, WIDE_VALUES)
        cute.arch.cp_async_commit_group()
        slot = (2 * tile + 1) % STAGES
        {sums}

    for row in cutlass.range_constexpr(ROWS):
        whole = cute.arch.warp_reduction(sums[row], lambda one, other: one + other, threads_in_group=4)
        {safe}
        sums[row] = whole
        fading[row] = WEIGHT_STEP / whole
    fade(total, fading)
    {finish}
"""

STORE = '''
def factor_layout(shape):
    """Weights as tensor cores take a left factor: two neighbouring groups of 8 keys are 16 values of its depth."""
    _, down, across = shape
    return cute.make_layout(((2, 2, 2), down, across // 2), stride=((1, 2, 4 * down), 4, 8 * down))

@cute.jit
def store_pairs(total: cute.Tensor, places: cute.Tensor, result: cute.Tensor, first_query: cutlass.Int32):
    """A thread's results, two neighbouring columns an access where these lie side by side."""
    for i in cutlass.range_constexpr(0, cute.size(total), PAIR):
        query, column = first_query + places[i][0], places[i][1]
        if query < QUERIES and column < WIDTH:
            pair = cute.make_rmem_tensor((PAIR,), result.element_type)
            for k in cutlass.range_constexpr(PAIR):
                pair[k] = total[i + k].to(result.element_type)
            cute.autovec_copy(pair, cute.zipped_divide(result[query, None], (PAIR,))[None, column // PAIR])
'''

HALF_FINISH = """
store_pairs(total, ends, result[None, None, batch], first_query)
"""
HALF_SCORES = """
scores.fill(0.0)
for k in cutlass.range_constexpr(DEPTH_PADDED // 16):
    cute.copy(load_query, from_queries[None, None, k, 0], into_query[None, None, k])
    cute.copy(load_key, from_keys[None, None, k, slot], into_key[None, None, k])
    cute.gemm(mma, scores, query_part[None, None, k], key_part[None, None, k], scores)
"""
HALF_SUMS = """
weights.store(scores.load().to({operand}))
for panel in cutlass.range_constexpr(PANELS):
    from_values = load_value.get_slice(tidx).partition_S(turned_panel(values_at, panel))
    whole = of_panel(total, panel)
    for k in cutlass.range_constexpr(TILE_KEYS // 16):
        cute.copy(load_value, from_values[None, None, k, slot], into_value[None, None, k])
        cute.gemm(mma, whole, as_factor[None, None, k], value_part[None, None, k], whole)
"""

CAUSAL = """
tiles = cutlass.min(tiles, cutlass.max(first_query + TILE_QUERIES - 1 + DIAGONAL + TILE_KEYS, TILE_KEYS) // TILE_KEYS)
"""
HALF_STEP = {
    "{base}": "peak * LOG2_STEP",
    "{exponents}": "own.load() * LOG2_STEP - base",
    "{exponent}": "peaks[row] * LOG2_STEP - base",
}
SAFE = """
if peaks[row] == -float("inf"):
    whole = cutlass.Float32.inf  # all of its scores are masked: zeros
"""

HOST = """
operation = warp.MmaF16BF16Op({operand}, cutlass.Float32, (16, 8, 16))
mma = cute.make_tiled_mma(operation, cute.make_layout((WARPS, 1, 1)), permutation_mnk=(16 * WARPS, 16, 16))
copy = cute.make_copy_atom(cpasync.CopyG2SOp(LoadCacheMode.GLOBAL), {operand}, num_bits_per_copy=128)
down = cute.ceil_div(QUERIES, TILE_QUERIES)
{name}_kernel(
    {queries},
    {keys},
    {values},
    result,
    copy,
    mma,
    down,
    {split}
    {masks}
).launch(grid=[down * BATCHES, 1, 1], block=[THREADS, 1, 1], stream=stream)
"""
