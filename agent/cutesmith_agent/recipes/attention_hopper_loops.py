"""How a warpgroup goes through tiles of keys on Hopper: text of a candidate file.

In half precision either in turn (scores, softmax, results), or overlapped: scores of the next tile are multiplied
before the results of this one, which still are while the next one's scores go through the softmax.
"""

from __future__ import annotations

from .product_engine import placed

_HALF_SCORES = """
key_pipe.consumer_wait(reading)
warpgroup.fence()
score_mma.set(warpgroup.Field.ACCUMULATE, False)
for k in cutlass.range_constexpr(DEPTH // 16):
    a, b = query_part[None, None, k, 0], key_part[None, None, k, reading.index]
    cute.gemm(score_mma, products, a, b, products)
    score_mma.set(warpgroup.Field.ACCUMULATE, True)
warpgroup.commit_group()
"""
_HALF_SUMS = """
value_pipe.consumer_wait(adding)
warpgroup.fence()
value_mma.set(warpgroup.Field.ACCUMULATE, True)
for k in cutlass.range_constexpr(TILE_KEYS // 16):
    b = value_part[None, None, k, adding.index]
    cute.gemm(value_mma, means, as_factor[None, None, k], b, means)
warpgroup.commit_group()
"""
_OVERLAPPED = """
adding = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
first_key = 0
{scores}
warpgroup.wait_group(0)
key_pipe.consumer_release(reading)
reading.advance()
{masks}
into_weights(scores, peaks, sums, fading)
weights.store(scores.load().to({operand}))
for tile in cutlass.range(1, tiles, unroll=1):
    first_key = tile * TILE_KEYS
    {scores}
    {sums}
    warpgroup.wait_group(1)
    key_pipe.consumer_release(reading)
    reading.advance()
    {masks}
    into_weights(scores, peaks, sums, fading)
    warpgroup.wait_group(0)
    value_pipe.consumer_release(adding)
    adding.advance()
    fade(total, fading)
    weights.store(scores.load().to({operand}))
{sums}
warpgroup.wait_group(0)
value_pipe.consumer_release(adding)
"""
OVERLAPPED_LOOP = placed(placed(_OVERLAPPED, "{scores}", _HALF_SCORES), "{sums}", _HALF_SUMS)

_IN_TURN = """
for tile in cutlass.range(tiles, unroll=1):
    first_key = tile * TILE_KEYS
    {scores}
    key_pipe.consumer_release(reading)
    {masks}
    into_weights(scores, peaks, sums, fading)
    fade(total, fading)
    {sums}
    value_pipe.consumer_release(reading)
    reading.advance()
"""
_WAITED = "warpgroup.wait_group(0)\n"
HALF_LOOP = placed(
    placed(_IN_TURN, "{scores}", _HALF_SCORES + _WAITED),
    "{sums}",
    "weights.store(scores.load().to({operand}))" + _HALF_SUMS.replace("adding", "reading") + _WAITED,
)

SPLIT_STATES = """
partial = cute.make_rmem_tensor(places.shape, cutlass.Float32)
addend = cute.make_rmem_tensor(ends.shape, cutlass.Float32)
rests = cute.make_rmem_tensor(scores.shape, {operand})
low_factor = as_left_factor(rests)
"""

_SPLIT_SCORES = """
key_pipe.consumer_wait(reading)
high, low = 2 * reading.index, 2 * reading.index + 1
for first in cutlass.range_constexpr(0, DEPTH // 16, 2):
    warpgroup.fence()
    score_mma.set(warpgroup.Field.ACCUMULATE, False)
    # The small terms first, while the sum is small as well. low * low is below 2^-22 of high * high.
    for k in cutlass.range_constexpr(first, min(first + 2, DEPTH // 16)):
        cute.gemm(score_mma, partial, query_part[None, None, k, 1], key_part[None, None, k, high], partial)
        score_mma.set(warpgroup.Field.ACCUMULATE, True)
        cute.gemm(score_mma, partial, query_part[None, None, k, 0], key_part[None, None, k, low], partial)
    for k in cutlass.range_constexpr(first, min(first + 2, DEPTH // 16)):
        cute.gemm(score_mma, partial, query_part[None, None, k, 0], key_part[None, None, k, high], partial)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    if cutlass.const_expr(first == 0):
        products.store(partial.load())
    else:
        products.store(products.load() + partial.load())
settle(scores, places, first_query, first_key, batch, query_undo, key_undo, exact_queries, exact_keys)
"""

_SPLIT_SUMS = """
value_pipe.consumer_wait(reading)
scaled = scores.load() * (1 / WEIGHT_STEP)
weights.store(scaled.to({operand}))
rests.store((scaled - weights.load().to(cutlass.Float32)).to({operand}))
high, low = 2 * reading.index, 2 * reading.index + 1
for first in cutlass.range_constexpr(0, TILE_KEYS // 16, 2):
    warpgroup.fence()
    value_mma.set(warpgroup.Field.ACCUMULATE, False)
    for k in cutlass.range_constexpr(first, first + 2):
        cute.gemm(value_mma, addend, low_factor[None, None, k], value_part[None, None, k, high], addend)
        value_mma.set(warpgroup.Field.ACCUMULATE, True)
        cute.gemm(value_mma, addend, as_factor[None, None, k], value_part[None, None, k, low], addend)
    for k in cutlass.range_constexpr(first, first + 2):
        cute.gemm(value_mma, addend, as_factor[None, None, k], value_part[None, None, k, high], addend)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    means.store(means.load() + addend.load())
"""

SPLIT_LOOP = placed(placed(_IN_TURN, "{scores}", _SPLIT_SCORES), "{sums}", _SPLIT_SUMS)
