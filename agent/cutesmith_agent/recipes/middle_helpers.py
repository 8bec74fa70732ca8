"""Functions of a kernel whose rows lie side by side: a thread's values are vectors, (rows, columns)."""

from __future__ import annotations

NEUTRAL_PAIR = {
    "argmax": ["-float('inf'), cutlass.Float32", "COLUMNS, cutlass.Int32"],
    "argmin": ["float('inf'), cutlass.Float32", "COLUMNS, cutlass.Int32"],
}


def middle_helpers(lines: list[str]) -> list[str]:
    """Those that these lines call, and what they call in turn."""
    text = "\n".join(lines)
    argmin = "row_argmin" in text
    found = [*_LOAD]
    if "store(" in text:
        found += _STORE
    if "online(" in text or "fold(" in text:
        found += _FOLD
    if "larger" in text or "online(" in text:
        found += _chosen("larger", ">")
    if "smaller" in text:
        found += _chosen("smaller", "<")
    if "online(" in text:
        found += _ONLINE
    if "across" in text:
        found += _ROOMS
    if "across(" in text:
        found += _ACROSS
    if "nearest(" in text:
        found += _nearest("<" if argmin else ">", "smaller" if argmin else "larger")
    if "across_pairs(" in text:
        found += _ACROSS_PAIRS
    return found


_LOAD = (
    "def load(g, tile, column, width, steps):",
    '    """`steps` elements, PARTS columns apart, of each of `width` neighbouring rows, in fp32."""',
    "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
    "    for step in range(steps):",
    "        tiles = cute.zipped_divide(g[None, column + step * PARTS], (width,))",
    "        cute.autovec_copy(tiles[None, tile], fragment[None, step])",
    "    return fragment.load().to(cutlass.Float32)",
    "",
)
_STORE = (
    "@cute.jit",
    "def store(",
    "    result, g: cute.Tensor, tile, column, width: cutlass.Constexpr, steps: cutlass.Constexpr, live",
    "):",
    "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
    "    fragment.store(result.to(g.element_type))",
    "    if live:",
    "        for step in cutlass.range_constexpr(steps):",
    "            tiles = cute.zipped_divide(g[None, column + step * PARTS], (width,))",
    "            cute.autovec_copy(fragment[None, step], tiles[None, tile])",
    "",
)
_FOLD = (
    "def fold(values, op, neutral):",
    '    """A thread\'s columns of each row to one value."""',
    "    return values.reduce(op, neutral, (None, 1)).reshape((values.shape[0], 1))",
    "",
)
_ONLINE = (
    "def finite(top):",
    '    """`top`, or 0 where it is -inf or NaN: exp(x - 0) is then 0 or NaN, as it must be."""',
    "    return cute.where(top > -float('inf'), top, 0.0)",
    "",
    "def online(x, top, total):",
    '    """The running maxima, and the running sums of exp(x - maximum) rescaled to them."""',
    "    higher = larger(top, fold(x, cute.ReductionOp.MAX, -float('inf')))",
    "    base = finite(higher)",
    "    fresh = fold(cute.math.exp(x - base), cute.ReductionOp.ADD, 0.0)",
    "    return higher, total * cute.math.exp(top - base) + fresh",
    "",
)
_ACROSS = (
    "def across(values, combine, sParts, slot, lane, part):",
    '    """One value per thread and row to one per row: through shared memory, in one fixed order."""',
    "    room(sParts, slot, part, lane).store(values.reshape((vector,)))",
    "    cute.arch.sync_threads()",
    "    total = taken(sParts, slot, 0, lane)",
    "    for other in range(1, PARTS):",
    "        total = combine(total, taken(sParts, slot, other, lane))",
    "    return total",
    "",
)
_ROOMS = (
    "def room(sParts, slot, part, lane):",
    '    """A thread\'s place for its rows\' values."""',
    "    return cute.zipped_divide(sParts[slot, part, None], (vector,))[None, lane]",
    "",
    "def taken(sParts, slot, part, lane):",
    "    return room(sParts, slot, part, lane).load().reshape((vector, 1))",
    "",
)


def _chosen(name: str, sign: str) -> list[str]:
    return [
        f"def {name}(a, b):",
        f'    """The {name} of each pair; NaN where one is."""',
        f"    return cute.where((a {sign} b) | (a != a), a, b)",
        "",
    ]


def _nearest(sign: str, word: str) -> list[str]:
    return [
        "def closer(a, i, b, j):",
        f'    """Whether (a, i) comes before (b, j): NaN first, then the {word} value, then the lower index."""',
        f"    beats = (a {sign} b) | ((a != a) & (b == b))",
        "    ties = (a == b) | ((a != a) & (b != b))",
        "    return beats | (ties & (i < j))",
        "",
        "def better(a, i, b, j):",
        "    first = closer(a, i, b, j)",
        "    return cute.where(first, a, b), cute.where(first, i, j)",
        "",
        "def nearest(values, column, best, at):",
        f'    """The running {word} value of each row, and its column."""',
        "    fragment = cute.make_rmem_tensor(values.shape, cutlass.Float32)",
        "    fragment.store(values)",
        "    for step in range(values.shape[1]):",
        "        value = fragment[None, step].load().reshape(best.shape)",
        "        best, at = better(value, cute.full(best.shape, column + step * PARTS, cutlass.Int32), best, at)",
        "    return best, at",
        "",
    ]


_ACROSS_PAIRS = (
    "def across_pairs(best, at, sParts, slot, lane, part):",
    '    """As `across`, for values and their columns, which are whole numbers that a float32 holds."""',
    "    room(sParts, slot, part, lane).store(best.reshape((vector,)))",
    "    room(sParts, slot + 1, part, lane).store(at.to(cutlass.Float32).reshape((vector,)))",
    "    cute.arch.sync_threads()",
    "    best, at = taken(sParts, slot, 0, lane), taken(sParts, slot + 1, 0, lane)",
    "    for other in range(1, PARTS):",
    "        best, at = better(taken(sParts, slot, other, lane), taken(sParts, slot + 1, other, lane), best, at)",
    "    return best, at.to(cutlass.Int32)",
    "",
)
