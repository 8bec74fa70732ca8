"""From scores to the weights that two warpgroups share, for heads of many columns: text of a candidate file."""

from __future__ import annotations

SOFTMAX = '''
@cute.jit
def into_weights(
    scores: cute.Tensor,
    line: cutlass.Int32,
    group: cutlass.Int32,
    shared: cute.Tensor,
    peaks: cute.Tensor,
    sums: cute.Tensor,
    fading: cute.Tensor,
):
    """Scores become exp(score - largest so far, of both warpgroups). `fading`: what earlier weights are multiplied by
    now. `line`: the thread's first row; the other is 8 below."""
    for row in cutlass.range_constexpr(ROWS):
        own = scores[(None, row), 0, None]
        peak = own.load().reduce(cute.ReductionOp.MAX, peaks[row], 0)
        peak = cute.arch.warp_reduction(peak, cute.arch.fmax, threads_in_group=4)
        if cute.arch.lane_idx() % 4 == 0:
            shared[line + 8 * row, group] = peak
    cute.arch.barrier(barrier_id=1, number_of_threads=CONSUMERS)  # and earlier weights have been read
    for row in cutlass.range_constexpr(ROWS):
        own = scores[(None, row), 0, None]
        peak = cute.arch.fmax(shared[line + 8 * row, 0], shared[line + 8 * row, 1])
        base = peak
        if peak == -float("inf"):
            base = cutlass.Float32(0)
        weights = cute.math.exp2((own.load() - base) * LOG2_STEP, fastmath=True)
        own.store(weights)
        fading[row] = cute.math.exp2((peaks[row] - base) * LOG2_STEP, fastmath=True)
        sums[row] = sums[row] * fading[row] + weights.reduce(cute.ReductionOp.ADD, cutlass.Float32(0), 0)
        peaks[row] = peak

def share_weights(scores, places, own_weights):
    """Parts of a thread's weights, to where tensor cores take a left factor from."""
    pair = cute.make_rmem_tensor((2,), cutlass.Float32)
    for i in range(0, cute.size(scores), 2):
        pair[0], pair[1] = scores[i], scores[i + 1]
        row, key = places[i]
        high = cute.zipped_divide(own_weights[row, None, key // 32], (2,))
        low = cute.zipped_divide(own_weights[row, None, CHUNKS + key // 32], (2,))
        store_parts(pair, 1 / WEIGHT_STEP, high[None, key % 32 // 2], low[None, key % 32 // 2])

def share_sums(sums, line, group, shared):
    """Each row's sum of the weights of a warpgroup's keys."""
    for row in range(ROWS):
        whole = cute.arch.warp_reduction(sums[row], lambda one, other: one + other, threads_in_group=4)
        shared[line + 8 * row, 2 + group] = whole

@cute.jit
def add_earlier(
    total: cute.Tensor, places: cute.Tensor, result: cute.Tensor, first_query: cutlass.Int32, fading: cute.Tensor
):
    """What earlier tiles of keys gave, faded, is added to a thread's results."""
    for i in cutlass.range_constexpr(cute.size(total)):
        query, column = first_query + places[i][0], places[i][1]
        if query < QUERIES and column < WIDTH:
            total[i] = total[i] + result[query, column] * fading[i // 2 % 2]
'''
