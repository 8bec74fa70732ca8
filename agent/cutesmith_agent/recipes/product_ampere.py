"""The product on tensor cores from sm_80 on: text of a candidate file.

A block loads tiles of both factors by cp.async, some stages ahead; its warps take fragments by ldmatrix and multiply
them by mma.sync. What a stage of parts of fp32 values adds up goes into fp32 registers before the next.
"""

from __future__ import annotations

from .product_engine import Engine, Sums
from .product_finish import TILE, TILE_ONCE_MORE

IMPORTS = """
from cutlass.cute.nvgpu import LoadCacheMode, cpasync, warp

THREADS = 32 * WARPS_M * WARPS_N
"""

KERNEL = '''
@cute.jit
def inside(places: cute.Tensor, first: cutlass.Int32, lines: cutlass.Int32):
    """Which of a thread's copies of a tile are of lines that the matrix has."""
    shape = (1, places.shape[1], places.shape[2])
    found = cute.make_rmem_tensor(cute.make_layout(shape), cutlass.Boolean)
    for i in cutlass.range_constexpr(shape[1]):
        for j in cutlass.range_constexpr(shape[2]):
            found[0, i, j] = first + places[0, i, j][0] < lines
    return found

@cute.kernel
def {name}_kernel(
    left_parts: cute.Tensor,
    right_parts: cute.Tensor,
    fetch: cute.TiledCopy,
    mma: cute.TiledMma,
    down: cutlass.Int32,
    across: cutlass.Int32,
    {parameters}
):
    tidx, _, _ = cute.arch.thread_idx()
    work, _, _ = cute.arch.block_idx()
    m, n, z = place(work, down, across)
    first_row, first_column, batch = m * TILE_M, n * TILE_N, z // SPLITS
    share = -(-(-(-DEPTH // TILE_K)) // SPLITS)
    start = z % SPLITS * share
    chunks = cutlass.min(share, -(-DEPTH // TILE_K) - start)
    {skip}

    smem = cutlass.memory.SmemAllocator()
    swizzle = cute.make_swizzle(2, 4, 3)
    left_layout = cute.make_ordered_layout((TILE_M, TILE_K, PARTS * STAGES), (1, 0, 2))
    right_layout = cute.make_ordered_layout((TILE_N, TILE_K, PARTS * STAGES), (1, 0, 2))
    left_stages = smem.allocate_tensor({operand}, left_layout, 128, swizzle)
    right_stages = smem.allocate_tensor({operand}, right_layout, 128, swizzle)

    copy = fetch.get_slice(tidx)
    left_from = copy.partition_S(cute.local_tile(left_parts, (TILE_M, TILE_K), (m, None, None)))
    right_from = copy.partition_S(cute.local_tile(right_parts, (TILE_N, TILE_K), (n, None, None)))
    left_to, right_to = copy.partition_D(left_stages), copy.partition_D(right_stages)
    left_places = copy.partition_S(cute.make_identity_tensor((TILE_M, TILE_K)))
    right_places = copy.partition_S(cute.make_identity_tensor((TILE_N, TILE_K)))
    left_inside = inside(left_places, first_row, cute.size(left_parts, mode=[0]))
    right_inside = inside(right_places, first_column, cute.size(right_parts, mode=[0]))

    thread = mma.get_slice(tidx)
    left_fragment = mma.make_fragment_A(thread.partition_A(left_stages)[None, None, None, 0])
    right_fragment = mma.make_fragment_B(thread.partition_B(right_stages)[None, None, None, 0])
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), {operand})
    load_left, load_right = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
    from_left = load_left.get_slice(tidx).partition_S(left_stages)
    from_right = load_right.get_slice(tidx).partition_S(right_stages)
    into_left = load_left.get_slice(tidx).retile(left_fragment)
    into_right = load_right.get_slice(tidx).retile(right_fragment)
    places = thread.partition_C(cute.make_identity_tensor((TILE_M, TILE_N)))
    total = cute.make_rmem_tensor(places.shape, cutlass.Float32)
    total.fill(0.0)
    {states}

    for ahead in cutlass.range_constexpr(STAGES - 1):
        if ahead < chunks:
            for part in cutlass.range_constexpr(PARTS):
                at = (None, None, None, start + ahead, PARTS * batch + part)
                to = (None, None, None, PARTS * ahead + part)
                cute.copy(fetch, left_from[at], left_to[to], pred=left_inside)
                cute.copy(fetch, right_from[at], right_to[to], pred=right_inside)
        cute.arch.cp_async_commit_group()
    for chunk in cutlass.range(chunks, unroll=1):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()  # the chunk is there, and the stage that is filled next has been read
        ahead = chunk + STAGES - 1
        if ahead < chunks:
            stage = ahead % STAGES
            for part in cutlass.range_constexpr(PARTS):
                at = (None, None, None, start + ahead, PARTS * batch + part)
                to = (None, None, None, PARTS * stage + part)
                cute.copy(fetch, left_from[at], left_to[to], pred=left_inside)
                cute.copy(fetch, right_from[at], right_to[to], pred=right_inside)
        cute.arch.cp_async_commit_group()
        {sums}
    {finish}
'''

SPLIT_STATES = """
partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)
left_low = mma.make_fragment_A(thread.partition_A(left_stages)[None, None, None, 0])
right_low = mma.make_fragment_B(thread.partition_B(right_stages)[None, None, None, 0])
into_left_low = load_left.get_slice(tidx).retile(left_low)
into_right_low = load_right.get_slice(tidx).retile(right_low)
"""
SPLIT_LOOP = """
high, low = 2 * (chunk % STAGES), 2 * (chunk % STAGES) + 1
partial.fill(0.0)
# The small terms first, while the sum is small as well. low * low is below 2^-22 of high * high.
for k in cutlass.range_constexpr(TILE_K // 16):
    cute.copy(load_left, from_left[None, None, k, low], into_left_low[None, None, k])
    cute.copy(load_right, from_right[None, None, k, high], into_right[None, None, k])
    cute.gemm(mma, partial, left_low[None, None, k], right_fragment[None, None, k], partial)
    cute.copy(load_left, from_left[None, None, k, high], into_left[None, None, k])
    cute.copy(load_right, from_right[None, None, k, low], into_right_low[None, None, k])
    cute.gemm(mma, partial, left_fragment[None, None, k], right_low[None, None, k], partial)
for k in cutlass.range_constexpr(TILE_K // 16):
    cute.gemm(mma, partial, left_fragment[None, None, k], right_fragment[None, None, k], partial)
total.store(total.load() + partial.load())
"""

HALF_LOOP = """
now = chunk % STAGES
for k in cutlass.range_constexpr(TILE_K // 16):
    cute.copy(load_left, from_left[None, None, k, now], into_left[None, None, k])
    cute.copy(load_right, from_right[None, None, k, now], into_right[None, None, k])
    cute.gemm(mma, total, left_fragment[None, None, k], right_fragment[None, None, k], total)
"""

HOST = """
operation = warp.MmaF16BF16Op({operand}, cutlass.Float32, (16, 8, 16))
warps = cute.make_layout((WARPS_M, WARPS_N, 1))
mma = cute.make_tiled_mma(operation, warps, permutation_mnk=(16 * WARPS_M, 16 * WARPS_N, 16))
async_copy = cute.make_copy_atom(cpasync.CopyG2SOp(LoadCacheMode.GLOBAL), {operand}, num_bits_per_copy=128)
eights = TILE_K // 8
threads = cute.make_layout((THREADS // eights, eights), stride=(eights, 1))
fetch = cute.make_tiled_copy_tv(async_copy, threads, cute.make_layout((1, 8)))
down = cute.ceil_div(rows, TILE_M)
across = cute.ceil_div(columns, TILE_N)
{name}_kernel(
    left_parts,
    right_parts,
    fetch,
    mma,
    down,
    across,
    {tensors}
).launch(
    grid=[down * across * batches * SPLITS, 1, 1], block=[THREADS, 1, 1], stream=stream
)
"""

UPPER = """
if first_column + TILE_N - 1 - first_row < DIAGONAL:
    chunks = 0
"""
LOWER = """
if first_column - first_row - TILE_M + 1 > DIAGONAL:
    chunks = 0
"""

AMPERE = Engine(
    IMPORTS,
    KERNEL,
    Sums(SPLIT_STATES, SPLIT_LOOP, ""),
    Sums("", HALF_LOOP, ""),
    "",
    HOST,
    TILE,
    TILE_ONCE_MORE,
    through="places",
    run=2,
    whole_stages=True,
    least=(8, 0),
    upper=UPPER,
    lower=LOWER,
)
