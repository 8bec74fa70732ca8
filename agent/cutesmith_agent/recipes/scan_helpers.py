"""Functions of a scan's program: a thread's part of a tile, and accumulating over the threads of a row."""

from __future__ import annotations


def scan_helpers(*, reverse: bool, exclusive: set[bool]) -> list[str]:
    """`reverse`: from a row's end. `exclusive`: the kinds of scan that are needed."""
    lines = [*_load_store(reverse=reverse), *_prefix(reverse=reverse)]
    for kind in sorted(exclusive):
        lines += _scan(exclusive=kind, reverse=reverse)
    return lines


def _place(*, reverse: bool) -> str:
    return "CHUNKS - 1 - chunk" if reverse else "chunk"


def _load_store(*, reverse: bool) -> list[str]:
    place = _place(reverse=reverse)
    order = "; the row's end comes first" if reverse else ""
    return [
        "@cute.jit",
        "def copy(source: cute.Tensor, target: cute.Tensor, chunk, live):",
        "    if live and chunk < CHUNKS:",
        "        cute.autovec_copy(source, target)",
        "",
        "def load(g, row, tile, lane):",
        f'    """This thread\'s part of a tile in fp32: STEPS accesses, THREADS_PER_ROW apart{order}."""',
        "    tiles = cute.zipped_divide(g[row, None], (vector,))",
        "    fragment = cute.make_rmem_tensor((vector, STEPS), g.element_type)",
        "    fragment.fill(0)",
        "    for step in range(STEPS):",
        "        chunk = (tile * STEPS + step) * THREADS_PER_ROW + lane",
        f"        copy(tiles[None, {place}], fragment[None, step], chunk, True)",
        "    return fragment.load().to(cutlass.Float32)",
        "",
        "def store(result, g, row, tile, lane, live):",
        "    tiles = cute.zipped_divide(g[row, None], (vector,))",
        "    fragment = cute.make_rmem_tensor((vector, STEPS), g.element_type)",
        "    fragment.store(result.to(g.element_type))",
        "    for step in range(STEPS):",
        "        chunk = (tile * STEPS + step) * THREADS_PER_ROW + lane",
        f"        copy(fragment[None, step], tiles[None, {place}], chunk, live)",
        "",
    ]


def _prefix(*, reverse: bool) -> list[str]:
    first = "vector - 1 - k" if reverse else "k"
    return [
        "def element(k):",
        '    """The k-th of a thread\'s neighbouring elements in the scan\'s order."""',
        f"    return {first}",
        "",
        "@cute.jit",
        "def across_lanes(total, combine: cutlass.Constexpr, lanes: cutlass.Constexpr, place):",
        '    """`total` accumulated over the first `lanes` lanes of a warp up to this one."""',
        "    for k in cutlass.range_constexpr((lanes - 1).bit_length()):",
        "        other = cute.arch.shuffle_sync_up(total, offset=1 << k, mask_and_clamp=0)",
        "        if place >= 1 << k:",
        "            total = combine(other, total)",
        "    return total",
        "",
        "@cute.jit",
        "def bases(",
        "    values: cute.Tensor, before: cute.Tensor, carry, combine: cutlass.Constexpr, neutral,",
        "    sTotals: cute.Tensor, tidx,",
        "):",
        '    """Puts what precedes each step\'s elements of this thread into `before`; returns the next tile\'s carry.',
        "",
        '    `values`: accumulated within the thread already."""',
        "    row, warp, place = tidx // THREADS_PER_ROW, tidx % THREADS_PER_ROW // 32, tidx % 32",
        "    for step in cutlass.range_constexpr(STEPS):",
        "        total = across_lanes(values[element(vector - 1), step], combine, 32, place)",
        "        if place == 31:",
        "            sTotals[row, step * WARPS_PER_ROW + warp] = total",
        "        previous = cute.arch.shuffle_sync_up(total, offset=1, mask_and_clamp=0)",
        "        before[step] = previous if place > 0 else cutlass.Float32(neutral)",
        "    cute.arch.sync_threads()",
        "    total = across_lanes(sTotals[row, place % PARTS], combine, PARTS, place)",
        "    for step in cutlass.range_constexpr(STEPS):",
        "        part = step * WARPS_PER_ROW + warp",
        "        previous = cute.arch.shuffle_sync(total, offset=cutlass.max(part - 1, 0))",
        "        base = combine(carry, previous) if part > 0 else carry",
        "        before[step] = combine(base, before[step])",
        "    return combine(carry, cute.arch.shuffle_sync(total, offset=PARTS - 1))",
        "",
        "def within(values, combine):",
        "    fragment = cute.make_rmem_tensor((vector, STEPS), cutlass.Float32)",
        "    fragment.store(values)",
        "    for step in range(STEPS):",
        "        for k in range(1, vector):",
        "            fragment[element(k), step] = combine(fragment[element(k - 1), step], fragment[element(k), step])",
        "    return fragment",
        "",
    ]


def _scan(*, exclusive: bool, reverse: bool) -> list[str]:
    name, words = ("scan_exclusive", "without the element itself") if exclusive else ("scan", "with the element itself")
    return [
        f"def {name}(values, carry, combine, neutral, sTotals, tidx):",
        f'    """A tile\'s values accumulated over the row up to each one, {words}; and the carry to the next."""',
        "    fragment = within(values, combine)",
        "    before = cute.make_rmem_tensor((STEPS,), cutlass.Float32)",
        "    carry = bases(fragment, before, carry, combine, neutral, sTotals, tidx)",
        "    result = cute.make_rmem_tensor((vector, STEPS), cutlass.Float32)",
        "    for step in range(STEPS):",
        *(
            [
                "        result[element(0), step] = before[step]",
                "        for k in range(1, vector):",
                "            result[element(k), step] = combine(before[step], fragment[element(k - 1), step])",
            ]
            if exclusive
            else [
                "        for k in range(vector):",
                "            result[element(k), step] = combine(before[step], fragment[element(k), step])",
            ]
        ),
        "    return result.load(), carry",
        "",
    ]
