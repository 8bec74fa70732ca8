"""How the one kernel for heads of many columns gets its operands: text of a candidate file, and its launches."""

from __future__ import annotations

QUERIES = '''
@cute.jit
def fetch_queries(queries: cute.Tensor, values: cute.Tensor, first: cutlass.Int32, step: cutlass.Int32):
    """A thread's values of 64 queries in a step's 32 columns: 4 neighbours of every eighth query; zeros past them."""
    tidx, _, _ = cute.arch.thread_idx()
    over, column = tidx % SPLITTERS // 8, step * 32 + tidx % 8 * 4
    values.fill(0.0)
    for i in cutlass.range_constexpr(8):
        query = first + 8 * i + over
        if query < QUERIES:
            if cutlass.const_expr(WIDE_QUERIES):
                if column < DEPTH:
                    four = cute.zipped_divide(queries[query, None], (4,))[None, column // 4]
                    cute.autovec_copy(four, values[None, i])
            else:
                for k in cutlass.range_constexpr(4):
                    if column + k < DEPTH:
                        values[k, i] = queries[query, column + k]

def split_queries(values, own_queries, undo, turn):
    """Eight threads have 32 columns of a query, which get a power of two of their own."""
    tidx, _, _ = cute.arch.thread_idx()
    over, place = tidx % SPLITTERS // 8, tidx % 8
    for i in range(8):
        peak = largest(values[None, i], cutlass.Int32(0))
        peak = cute.arch.warp_reduction(peak, cutlass.max, threads_in_group=8)
        high = cute.zipped_divide(own_queries[8 * i + over, None, 2 * turn], (4,))
        low = cute.zipped_divide(own_queries[8 * i + over, None, 2 * turn + 1], (4,))
        store_parts(values[None, i], scale_of(peak), high[None, place], low[None, place])
        undo[8 * i + over, turn] = undo_of(peak)
'''

SPLIT_KEYS = '''
@cute.kernel
def split_keys(matrix: cute.Tensor, parts: cute.Tensor, undo: cute.Tensor, width: cutlass.Constexpr):
    """`SPLIT_THREADS` threads have a key in registers: its largest magnitude, then its parts."""
    tidx, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at, lane = block * LINES_PER_BLOCK + tidx // SPLIT_THREADS, tidx % SPLIT_THREADS
    live = cutlass.min(at, cute.size(undo) - 1)  # threads past the last key redo it and store nothing
    key, batch = live % KEYS, live // KEYS
    vectors = cute.zipped_divide(matrix[key, None, batch], (width,))
    turns = -(-PITCH // (width * SPLIT_THREADS))
    values = cute.make_rmem_tensor((width, turns), cutlass.Float32)
    values.fill(0.0)
    for i in cutlass.range_constexpr(turns):
        v = lane + i * SPLIT_THREADS
        if v < DEPTH // width:
            cute.autovec_copy(vectors[None, v], values[None, i])
    peak = largest(values, cutlass.Int32(0))
    peak = cute.arch.warp_reduction(peak, cutlass.max, threads_in_group=SPLIT_THREADS)
    if at < cute.size(undo):
        high = cute.zipped_divide(parts[key, None, batch, 0], (width,))
        low = cute.zipped_divide(parts[key, None, batch, 1], (width,))
        for i in cutlass.range_constexpr(turns):
            v = lane + i * SPLIT_THREADS
            if v < PITCH // width:
                store_parts(values[None, i], scale_of(peak), high[None, v], low[None, v])
        if lane == 0:
            undo[key, batch] = undo_of(peak)
'''

VALUES = '''
@cute.kernel
def split_columns(matrix: cute.Tensor, parts: cute.Tensor, undo: cute.Tensor):
    """A block has 64 columns of a tile of keys in registers, 4 columns a thread. Each column of the tile gets a power
    of two of its own."""
    tidx, _, _ = cute.arch.thread_idx()
    block, tile, _ = cute.arch.block_idx()
    panels = cute.ceil_div(WIDTH, 64)
    panel, batch = block % panels, block // panels
    smem = cutlass.memory.SmemAllocator()
    peaks = smem.allocate_tensor(cutlass.Int32, cute.make_layout((64, 16), stride=(1, 64)), 16)
    first, over = tidx % 16 * 4, tidx // 16
    column = panel * 64 + first
    values = cute.make_rmem_tensor((4, TILE_KEYS // 32), cutlass.Float32)
    values.fill(0.0)
    for i in cutlass.range_constexpr(TILE_KEYS // 32):
        key = tile * TILE_KEYS + 32 * i + over
        if key < KEYS:
            if cutlass.const_expr(WIDE_VALUES):
                if column < WIDTH:
                    four = cute.zipped_divide(matrix[key, None, batch], (4,))[None, column // 4]
                    cute.autovec_copy(four, values[None, i])
            else:
                for k in cutlass.range_constexpr(4):
                    if column + k < WIDTH:
                        values[k, i] = matrix[key, column + k, batch]
    for k in cutlass.range_constexpr(4):
        peak = largest(values[k, None], cutlass.Int32(0))
        peak = cutlass.max(peak, cute.arch.shuffle_sync_bfly(peak, offset=16))
        if tidx % 32 < 16:
            peaks[first + k, tidx // 32] = peak
    cute.arch.sync_threads()
    scales = cute.make_rmem_tensor((4,), cutlass.Float32)
    for k in cutlass.range_constexpr(4):
        peak = cutlass.Int32(0)
        for other in cutlass.range_constexpr(16):
            peak = cutlass.max(peak, peaks[first + k, other])
        scales[k] = scale_of(peak)
        if over == 0:
            if column + k < WIDTH:
                undo[column + k, tile, batch] = undo_of(peak)
    for i in cutlass.range_constexpr(TILE_KEYS // 32):
        key = tile * TILE_KEYS + 32 * i + over
        if key < KEYS:
            if column < WIDTH_PITCH:
                scaled = values[None, i]
                scaled.store(scaled.load() * scales.load())
                high = cute.zipped_divide(parts[key, None, batch, 0], (4,))
                low = cute.zipped_divide(parts[key, None, batch, 1], (4,))
                store_parts(scaled, 1.0, high[None, column // 4], low[None, column // 4])
'''

UNSCALED = "scores[i] * key_undo[key, batch]"
SCRATCH = "BATCHES * (KEYS * (PITCH + WIDTH_PITCH + 1) + WIDTH * TILES)"
TENSORS = ("key_undo", "value_undo", "exact_queries", "exact_keys", "exact_values")

PARTS = """
work = cute.make_ptr(cutlass.Float32, mWork.iterator.toint(), cute.AddressSpace.gmem, assumed_align=16)
key_parts, key_written = parts_at(cute.recast_ptr(work, dtype=cutlass.Float16), KEYS, PITCH)
work += BATCHES * far(KEYS * PITCH)
value_parts, value_written = parts_at(cute.recast_ptr(work, dtype=cutlass.Float16), KEYS, WIDTH_PITCH)
work += BATCHES * far(KEYS * WIDTH_PITCH)
tiles = cute.ceil_div(KEYS, TILE_KEYS)
key_undo = cute.make_tensor(work, cute.make_layout((KEYS, BATCHES)))
value_undo = cute.make_tensor(work + BATCHES * KEYS, cute.make_layout((WIDTH, tiles, BATCHES)))
split = split_keys if PITCH <= 64 * SPLIT_THREADS else split_lines  # which reads a key twice
split(exact_keys, key_written, key_undo, 8 if WIDE_KEYS and DEPTH % 8 == 0 else 1).launch(
    grid=[cute.ceil_div(KEYS * BATCHES, LINES_PER_BLOCK), 1, 1], block=[256, 1, 1], stream=stream
)
split_columns(exact_values, value_written, value_undo).launch(
    grid=[cute.ceil_div(WIDTH, 64) * BATCHES, tiles, 1], block=[512, 1, 1], stream=stream
)
"""

HOST = """
def tma_load(parts, layout):
    \"\"\"The copy of a tile of one part to all blocks of a cluster, and the tensor that it reads.\"\"\"
    op = cpasync.CopyBulkTensorTileG2SMulticastOp() if CLUSTER > 1 else cpasync.CopyBulkTensorTileG2SOp()
    one = cute.slice_(layout, (None, None, 0))
    return cpasync.make_tiled_tma_atom(op, parts, one, (128, 32), num_multicast=CLUSTER)

row, column = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
score_mma = hopper_helpers.make_trivial_tiled_mma(
    {operand}, {operand}, row.mma_major_mode(), row.mma_major_mode(), cutlass.Float32, (1, 1, 1), (64, 128)
)
value_mma = hopper_helpers.make_trivial_tiled_mma(
    {operand}, {operand}, row.mma_major_mode(), column.mma_major_mode(), cutlass.Float32, (1, 1, 1), (64, 128)
)
tile = (TILE_QUERIES, 128, 32)
query_layout = hopper_helpers.make_smem_layout_a(row, tile, {operand}, 4)  # two parts, two turns
weight_layout = hopper_helpers.make_smem_layout_a(row, tile, {operand}, 2 * CHUNKS)
key_layout = hopper_helpers.make_smem_layout_b(row, tile, {operand}, 2 * STAGES)
value_layout = hopper_helpers.make_smem_layout_b(column, tile, {operand}, 2 * STAGES)
turned = cute.make_tensor(value_parts.iterator, cute.select(value_parts.layout, mode=[1, 0, 2]))
load_keys, key_tiles = tma_load(key_parts, key_layout)
load_values, value_tiles = tma_load(turned, value_layout)
down = cute.ceil_div(QUERIES, TILE_QUERIES * CLUSTER)
{name}_kernel(
    load_keys,
    key_tiles,
    load_values,
    value_tiles,
    query_layout,
    key_layout,
    value_layout,
    weight_layout,
    score_mma,
    value_mma,
    result,
    down,
    {split}
    {masks}
).launch(
    grid=[CLUSTER * down * BATCHES, 1, 1], block=[CONSUMERS + 128, 1, 1], cluster=[CLUSTER, 1, 1], stream=stream
)
"""
