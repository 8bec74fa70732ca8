"""Attention of fp32 tensors through fp16 parts: text of a candidate file.

Queries and keys are split line by line, values column by column, each by a power of two. Weights, between 0 and 1, are
split in registers. Sums of tensor cores go into fp32 registers after 32 products of high parts.
"""

from __future__ import annotations

VALUES = '''
@cute.kernel
def find_peaks(matrix: cute.Tensor, slices: cute.Tensor):
    """The largest magnitude of each column in `SLICE` of the values; neighbouring threads have neighbouring columns."""
    tidx, _, _ = cute.arch.thread_idx()
    batch, number, block = cute.arch.block_idx()
    column = block * 256 + tidx
    if column < WIDTH:
        value = cute.make_rmem_tensor((1,), cutlass.Float32)
        peak = cutlass.Int32(0)
        for key in cutlass.range(number * SLICE, cutlass.min(number * SLICE + SLICE, KEYS), unroll=8):
            value[0] = matrix[key, column, batch]
            peak = largest(value, peak)
        slices[column, number, batch] = peak

@cute.kernel
def split_columns(matrix: cute.Tensor, slices: cute.Tensor, parts: cute.Tensor, undo: cute.Tensor):
    """The parts of `SLICE` values, 8 columns a thread; powers of two are those of whole columns."""
    tidx, _, _ = cute.arch.thread_idx()
    batch, number, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    scales = smem.allocate_tensor(cutlass.Float32, cute.make_layout(WIDTH_PITCH), 16)
    for column in cutlass.range(tidx, WIDTH_PITCH, 256):
        peak = cutlass.Int32(0)
        if column < WIDTH:
            for other in cutlass.range(SLICES, unroll=8):
                peak = cutlass.max(peak, slices[column, other, batch])
            if number == 0:
                undo[column, batch] = undo_of(peak)
        scales[column] = scale_of(peak)
    cute.arch.sync_threads()
    places = WIDTH_PITCH // 8
    values = cute.make_rmem_tensor((8,), cutlass.Float32)
    for work in cutlass.range(tidx, SLICE * places, 256):
        key, place = number * SLICE + work // places, work % places
        if key < KEYS:
            for i in cutlass.range_constexpr(8):
                values[i] = cutlass.Float32(0)
                if place * 8 + i < WIDTH:
                    values[i] = matrix[key, place * 8 + i, batch] * scales[place * 8 + i]
            high = cute.zipped_divide(parts[key, None, batch, 0], (8,))
            low = cute.zipped_divide(parts[key, None, batch, 1], (8,))
            store_parts(values, 1.0, high[None, place], low[None, place])
'''

PLAIN = '''
@cute.jit
def unscaled(total, one, other):
    """Without both lines' powers of two, the smaller first: neither step leaves fp32's range before its result does."""
    return total * cutlass.min(one, other) * cutlass.max(one, other)

@cute.jit
def product_of(
    queries: cute.Tensor, keys: cute.Tensor, query: cutlass.Int32, key: cutlass.Int32, batch: cutlass.Int32
):
    """A query times a key by fp32 arithmetic."""
    total = cutlass.Float32(0)
    for k in cutlass.range(DEPTH):
        total += queries[query, k, batch] * keys[key, k, batch]
    return total

@cute.jit
def settle(
    scores: cute.Tensor,
    places: cute.Tensor,
    first_query: cutlass.Int32,
    first_key: cutlass.Int32,
    batch: cutlass.Int32,
    {undo_parameters}
    exact_queries: cute.Tensor,
    exact_keys: cute.Tensor,
):
    """Takes powers of two out of products. One with Inf or NaN is computed once more: its parts would add what the
    product has not."""
    numbers = cutlass.Boolean(True)
    for i in cutlass.range_constexpr(cute.size(scores)):
        query = cutlass.min(first_query + places[i][0], QUERIES - 1)
        key = cutlass.min(first_key + places[i][1], KEYS - 1)
        scores[i] = {unscaled}
        numbers = numbers & (scores[i] - scores[i] == 0.0)
    if not numbers:
        exact = cute.make_rmem_tensor(scores.shape, cutlass.Float32)
        exact.fill(0.0)
        for k in cutlass.range(DEPTH, unroll=1):
            for i in cutlass.range_constexpr(cute.size(scores)):
                query = cutlass.min(first_query + places[i][0], QUERIES - 1)
                key = cutlass.min(first_key + places[i][1], KEYS - 1)
                exact[i] += exact_queries[query, k, batch] * exact_keys[key, k, batch]
        for i in cutlass.range_constexpr(cute.size(scores)):
            if scores[i] - scores[i] != 0.0:
                scores[i] = exact[i]

@cute.jit
def plain(
    query: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    exact_queries: cute.Tensor,
    exact_keys: cute.Tensor,
    exact_values: cute.Tensor,
    {parameters}
):
    """A result by fp32 arithmetic."""
    peak, whole, total = -cutlass.Float32.inf, cutlass.Float32(0), cutlass.Float32(0)
    for key in cutlass.range(KEYS, unroll=1):
        score = product_of(exact_queries, exact_keys, query, key, batch)
        {mask}
        larger = cute.arch.fmax(peak, score)
        base = larger
        if larger == -float("inf"):
            base = cutlass.Float32(0)
        weight = cute.math.exp2((score - base) * LOG2_STEP)
        before = cute.math.exp2((peak - base) * LOG2_STEP)
        whole = whole * before + weight
        total = total * before + weight * exact_values[key, column, batch]
        peak = larger
    return total / whole

@cute.jit
def unscale_columns(total: cute.Tensor, places: cute.Tensor, undo: cute.Tensor):
    """Takes the columns' powers of two out of a thread's results."""
    for i in cutlass.range_constexpr(cute.size(total)):
        total[i] = total[i] * undo[cutlass.min(places[i][1], WIDTH - 1)]

@cute.jit
def store_checked(
    total: cute.Tensor,
    places: cute.Tensor,
    sums: cute.Tensor,
    result: cute.Tensor,
    first_query: cutlass.Int32,
    batch: cutlass.Int32,
    exact_queries: cute.Tensor,
    exact_keys: cute.Tensor,
    exact_values: cute.Tensor,
    {parameters}
):
    """A thread's results. Where values have Inf or NaN, and the sum of the weights has not, they are computed once
    more."""
    store_pairs(total, places, result[None, None, batch], first_query)
    numbers = cutlass.Boolean(True)
    for i in cutlass.range_constexpr(cute.size(total)):
        of_row = sums[i // 2 % 2 + i // 4 % (ROWS // 2) * 2]
        numbers = numbers & ((total[i] - total[i] == 0.0) | (of_row - of_row != 0.0) | (of_row == 0.0))
    if not numbers:
        for i in cutlass.range(cute.size(total), unroll=1):
            query, column = first_query + places[i][0], places[i][1]
            if query < QUERIES and column < WIDTH:
                found = result[query, column, batch]
                if found - found != 0.0:
                    result[query, column, batch] = plain(
                        query, column, batch, exact_queries, exact_keys, exact_values, {masks}
                    )
'''

STEP = {
    "{base}": "peak",
    "{exponents}": "(own.load() - base) * LOG2_STEP",
    "{exponent}": "(peaks[row] - base) * LOG2_STEP",
}
UNSCALED = "unscaled(scores[i], query_undo[query, batch], key_undo[key, batch])"
SCRATCH = "BATCHES * (QUERIES * (PITCH + 1) + KEYS * (PITCH + WIDTH_PITCH + 1) + WIDTH * (1 + SLICES))"
TENSORS = ("query_undo", "key_undo", "value_undo", "exact_queries", "exact_keys", "exact_values")

STATES = """
partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)
query_low = mma.make_fragment_A(thread.partition_A(own_queries)[None, None, None, 0])
key_low = mma.make_fragment_B(thread.partition_B(key_ring)[None, None, None, 0])
value_low = cute.make_fragment_like(value_part)
into_query_low = load_query.get_slice(tidx).retile(query_low)
into_key_low = load_key.get_slice(tidx).retile(key_low)
into_value_low = load_value.get_slice(tidx).retile(value_low)
rests = cute.make_rmem_tensor(places.shape, {operand})
low_factor = cute.make_tensor(rests.iterator, factor_layout(places.shape))
addend = cute.make_fragment_like(of_panel(total, 0))
"""

SCORES = """
high, low = 2 * slot, 2 * slot + 1
scores.fill(0.0)
for first in cutlass.range_constexpr(0, DEPTH_PADDED // 16, 2):
    partial.fill(0.0)  # the small terms first, while the sum is small as well; low * low is below 2^-22 of it
    for k in cutlass.range_constexpr(first, min(first + 2, DEPTH_PADDED // 16)):
        cute.copy(load_query, from_queries[None, None, k, 1], into_query_low[None, None, k])
        cute.copy(load_key, from_keys[None, None, k, high], into_key[None, None, k])
        cute.gemm(mma, partial, query_low[None, None, k], key_part[None, None, k], partial)
        cute.copy(load_query, from_queries[None, None, k, 0], into_query[None, None, k])
        cute.copy(load_key, from_keys[None, None, k, low], into_key_low[None, None, k])
        cute.gemm(mma, partial, query_part[None, None, k], key_low[None, None, k], partial)
    for k in cutlass.range_constexpr(first, min(first + 2, DEPTH_PADDED // 16)):
        cute.gemm(mma, partial, query_part[None, None, k], key_part[None, None, k], partial)
    scores.store(scores.load() + partial.load())
settle(scores, places, first_query, first_key, batch, query_undo, key_undo, exact_queries, exact_keys)
"""

SUMS = """
high, low = 2 * slot, 2 * slot + 1
scaled = scores.load() * (1 / WEIGHT_STEP)
weights.store(scaled.to({operand}))
rests.store((scaled - weights.load().to(cutlass.Float32)).to({operand}))
for panel in cutlass.range_constexpr(PANELS):
    from_values = load_value.get_slice(tidx).partition_S(turned_panel(values_at, panel))
    whole = of_panel(total, panel)
    for first in cutlass.range_constexpr(0, TILE_KEYS // 16, 2):
        addend.fill(0.0)
        for k in cutlass.range_constexpr(first, first + 2):
            cute.copy(load_value, from_values[None, None, k, high], into_value[None, None, k])
            cute.gemm(mma, addend, low_factor[None, None, k], value_part[None, None, k], addend)
            cute.copy(load_value, from_values[None, None, k, low], into_value_low[None, None, k])
            cute.gemm(mma, addend, as_factor[None, None, k], value_low[None, None, k], addend)
        for k in cutlass.range_constexpr(first, first + 2):
            cute.gemm(mma, addend, as_factor[None, None, k], value_part[None, None, k], addend)
        whole.store(whole.load() + addend.load())
"""

FINISH = """
unscale_columns(total, ends, value_undo[None, batch])
store_checked(total, ends, sums, result, first_query, batch, exact_queries, exact_keys, exact_values, {masks})
"""

PARTS = '''
def far(count):
    """From one matrix of the workspace to the next: of 64 bits where 32 do not hold all parts."""
    return count if BATCHES * count < 2**30 else cute.assume(cutlass.Int64(count), divby=8)

def parts_at(pointer, lines, pitch):
    """The two parts of each matrix in the workspace: as the kernel reads them, and as they are written."""
    step = far(lines * pitch)
    read = cute.make_layout((lines, pitch, 2 * BATCHES), stride=(pitch, 1, step))
    written = cute.make_layout((lines, pitch, BATCHES, 2), stride=(pitch, 1, 2 * step, step))
    return cute.make_tensor(pointer, read), cute.make_tensor(pointer, written)
'''

HOST = """
work = cute.make_ptr(cutlass.Float32, mWork.iterator.toint(), cute.AddressSpace.gmem, assumed_align=16)
query_parts, query_written = parts_at(cute.recast_ptr(work, dtype=cutlass.Float16), QUERIES, PITCH)
work += BATCHES * far(QUERIES * PITCH)
key_parts, key_written = parts_at(cute.recast_ptr(work, dtype=cutlass.Float16), KEYS, PITCH)
work += BATCHES * far(KEYS * PITCH)
value_parts, value_written = parts_at(cute.recast_ptr(work, dtype=cutlass.Float16), KEYS, WIDTH_PITCH)
work += BATCHES * far(KEYS * WIDTH_PITCH)
query_undo = cute.make_tensor(work, cute.make_layout((QUERIES, BATCHES)))
key_undo = cute.make_tensor(work + BATCHES * QUERIES, cute.make_layout((KEYS, BATCHES)))
work += BATCHES * (QUERIES + KEYS)
value_undo = cute.make_tensor(work, cute.make_layout((WIDTH, BATCHES)))
slices = cute.make_tensor(
    cute.recast_ptr(work + BATCHES * WIDTH, dtype=cutlass.Int32), cute.make_layout((WIDTH, SLICES, BATCHES))
)
split_lines(exact_queries, query_written, query_undo, 8 if WIDE_QUERIES and DEPTH % 8 == 0 else 1).launch(
    grid=[cute.ceil_div(QUERIES * BATCHES, LINES_PER_BLOCK), 1, 1], block=[256, 1, 1], stream=stream
)
split_lines(exact_keys, key_written, key_undo, 8 if WIDE_KEYS and DEPTH % 8 == 0 else 1).launch(
    grid=[cute.ceil_div(KEYS * BATCHES, LINES_PER_BLOCK), 1, 1], block=[256, 1, 1], stream=stream
)
find_peaks(exact_values, slices).launch(
    grid=[BATCHES, SLICES, cute.ceil_div(WIDTH, 256)], block=[256, 1, 1], stream=stream
)
split_columns(exact_values, slices, value_written, value_undo).launch(
    grid=[BATCHES, SLICES, 1], block=[256, 1, 1], stream=stream
)
"""
