"""fp32 factors that the product's kernel splits itself: text of a candidate file, for Hopper.

Tiles of both factors come as they are, in fp32, by TMA. A thread of a warpgroup that multiplies writes one line of each
as two fp16 parts to shared memory, scaled by a power of two of its own, while wgmma works on the stage before. Nothing
is written to memory but results: for factors that few tiles read, that is less than what a pass of splitting moves.
"""

from __future__ import annotations

from dataclasses import replace

from .product_engine import Sums, placed
from .product_hopper import HOPPER

IMPORTS = """
LEFT_WARPS = TILE_M // 32  # that split lines of the left factor; the others those of the right one
"""

MEMORY = """
tile = (TILE_M, TILE_N, TILE_K)
left_halves_layout = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, tile, cutlass.Float16, 4)
right_halves_layout = hopper_helpers.make_smem_layout_b(LayoutEnum.ROW_MAJOR, tile, cutlass.Float16, 4)
left_halves = smem.allocate_tensor(
    cutlass.Float16, left_halves_layout.outer, 1024, swizzle=left_halves_layout.inner
)  # two parts, two turns
right_halves = smem.allocate_tensor(
    cutlass.Float16, right_halves_layout.outer, 1024, swizzle=right_halves_layout.inner
)
left_scales = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE_M, 2)), 16)
right_scales = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE_N, 2)), 16)
"""

_SPLIT = """
pipe.consumer_wait(reading)
if warp < LEFT_WARPS:
    split(left_stages, left_halves, left_scales, tidx, reading.index, {turn})
else:
    split(right_stages, right_halves, right_scales, tidx - TILE_M, reading.index, {turn})
cute.arch.fence_proxy("async.shared", space="cta")  # wgmma sees what was written
cute.arch.sync_warp()  # one lane says for all that they have read the stage
pipe.consumer_release(reading)
reading.advance()
"""

_MULTIPLY = """
cute.arch.barrier(barrier_id=1, number_of_threads=CONSUMERS)  # all lines of the stage are split
high, low = 2 * {turn}, 2 * {turn} + 1
warpgroup.fence()
mma.set(warpgroup.Field.ACCUMULATE, False)
# The small terms first, while the sum is small as well. low * low is below 2^-22 of high * high.
for k in cutlass.range_constexpr(TILE_K // 16):
    a, b = left_fragment[None, None, k, low], right_fragment[None, None, k, high]
    cute.gemm(mma, partial, a, b, partial)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    a, b = left_fragment[None, None, k, high], right_fragment[None, None, k, low]
    cute.gemm(mma, partial, a, b, partial)
for k in cutlass.range_constexpr(TILE_K // 16):
    a, b = left_fragment[None, None, k, high], right_fragment[None, None, k, high]
    cute.gemm(mma, partial, a, b, partial)
warpgroup.commit_group()
"""

_LOOP = """
total.fill(0.0)
{first}
for chunk in cutlass.range(start + 1, end, unroll=1):
    {multiply}
    {split}
    warpgroup.wait_group(0)
    add(total, partial, places, left_scales[None, (chunk - start - 1) % 2], right_scales[None, (chunk - start - 1) % 2])
{last}
warpgroup.wait_group(0)
add(total, partial, places, left_scales[None, (end - start - 1) % 2], right_scales[None, (end - start - 1) % 2])
cute.arch.barrier(barrier_id=1, number_of_threads=CONSUMERS)  # before the next tile's first line is split
"""

LOOP = _LOOP
for _mark, _text in (
    ("{first}", _SPLIT.replace("{turn}", "0")),
    ("{multiply}", _MULTIPLY.replace("{turn}", "((chunk - start - 1) % 2)")),
    ("{split}", _SPLIT.replace("{turn}", "(chunk - start) % 2")),
    ("{last}", _MULTIPLY.replace("{turn}", "((end - start - 1) % 2)")),
):
    LOOP = placed(LOOP, _mark, _text)

HELPERS = '''
def split(stages, halves, undo, line, stage, turn):
    """A line of a stage as two parts, and one over the power of two that they were multiplied by."""
    values = cute.make_rmem_tensor((TILE_K,), cutlass.Float32)
    cute.autovec_copy(stages[line, None, stage], values)
    peak = largest(values, cutlass.Int32(0))
    store_parts(values, scale_of(peak), halves[line, None, 2 * turn], halves[line, None, 2 * turn + 1])
    undo[line, turn] = undo_of(peak)

def add(total, partial, places, left_undo, right_undo):
    """Adds a stage's sums, without their lines' powers of two."""
    one, other = left_undo[places[0][0]], left_undo[places[2][0]]
    for four in range(cute.size(total) // 4):  # two columns in each of two rows
        across = neighbours(right_undo, places[4 * four][1], 2)
        for i in range(2):
            total[4 * four + i] = total[4 * four + i] + partial[4 * four + i] * one * across[i]
            total[4 * four + 2 + i] = total[4 * four + 2 + i] + partial[4 * four + 2 + i] * other * across[i]
'''

DIRECT = replace(
    HOPPER,
    imports=HOPPER.imports.rstrip() + IMPORTS,
    split=Sums("partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)", LOOP, HELPERS),
    memory=MEMORY,
    fed=("left_halves", "right_halves"),
    is_direct=True,
)
