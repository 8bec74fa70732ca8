"""Functions of a row kernel's program: reading and writing a row that stays in registers, and reducing it."""

from __future__ import annotations

from .passes import ACROSS


def row_helpers(kinds: set[str], *, stores: bool) -> list[str]:
    """Those for reductions of `kinds`; `stores`: results have a value per column."""
    lines = _load_store(stores)
    if kinds - {"argmax", "argmin"}:
        lines += [*_keep(), *_reduce_row()]
    for kind in sorted(kinds & {"argmax", "argmin"}):
        lines += _find(kind)
    return lines


def _load_store(stores: bool) -> list[str]:
    load = [
        "def load(g, row, lane):",
        '    """This thread\'s part of a row in fp32: STEPS accesses, THREADS_PER_ROW apart; zeros past the end."""',
        "    tiles = cute.zipped_divide(g[row, None], (vector,))",
        "    fragment = cute.make_rmem_tensor((vector, STEPS), g.element_type)",
        "    if cutlass.const_expr(CHUNKS % THREADS_PER_ROW):",
        "        fragment.fill(0)",
        "    for step in range(STEPS):",
        "        copy(tiles, step * THREADS_PER_ROW + lane, fragment[None, step], step)",
        "    return fragment.load().to(cutlass.Float32)",
        "",
    ]
    copy = [
        "@cute.jit",
        "def copy(tiles: cute.Tensor, chunk, fragment: cute.Tensor, step: cutlass.Constexpr):",
        "    if cutlass.const_expr((step + 1) * THREADS_PER_ROW <= CHUNKS):",
        "        cute.autovec_copy(tiles[None, chunk], fragment)",
        "    else:",
        "        if chunk < CHUNKS:",
        "            cute.autovec_copy(tiles[None, chunk], fragment)",
        "",
    ]
    store = [
        "@cute.jit",
        "def store(result, g: cute.Tensor, row, lane, live):",
        "    tiles = cute.zipped_divide(g[row, None], (vector,))",
        "    fragment = cute.make_rmem_tensor((vector, STEPS), g.element_type)",
        "    fragment.store(result.to(g.element_type))",
        "    for step in cutlass.range_constexpr(STEPS):",
        "        chunk = step * THREADS_PER_ROW + lane",
        "        if live and chunk < CHUNKS:",
        "            cute.autovec_copy(fragment[None, step], tiles[None, chunk])",
        "",
    ]
    return copy + load + (store if stores else [])


def _keep() -> list[str]:
    return [
        "def keep(values, lane, neutral):",
        '    """`values`, with `neutral` in the columns past the end of the row."""',
        "    if STEPS * THREADS_PER_ROW == CHUNKS:",
        "        return values",
        "    fragment = cute.make_rmem_tensor((vector, STEPS), cutlass.Float32)",
        "    fragment.store(values)",
        "    blank(fragment[None, STEPS - 1], (STEPS - 1) * THREADS_PER_ROW + lane, neutral)",
        "    return fragment.load()",
        "",
        "@cute.jit",
        "def blank(fragment: cute.Tensor, chunk, neutral):",
        "    if chunk >= CHUNKS:",
        "        fragment.fill(neutral)",
        "",
    ]


def _reduce_row() -> list[str]:
    return [
        *ACROSS,
        "def reduce_row(values, op, combine, neutral, sRow, slot, tidx):",
        '    """`values` of all threads of a row to one value."""',
        "    return across(cutlass.Float32(values.reduce(op, neutral, 0)), combine, sRow, slot, tidx)",
        "",
    ]


def _find(kind: str) -> list[str]:
    sign, larger = (">", "larger") if kind == "argmax" else ("<", "smaller")
    start = "-float('inf')" if kind == "argmax" else "float('inf')"
    return [
        "def closer(a, i, b, j):",
        f'    """Whether (a, i) comes before (b, j): NaN first, then the {larger} value, then the lower index."""',
        f"    beats = (a {sign} b) | ((a != a) & (b == b))",
        "    ties = (a == b) | ((a != a) & (b != b))",
        "    return beats | (ties & (i < j))",
        "",
        "@cute.jit",
        f"def find_{kind}(values, sRow: cute.Tensor, slot: cutlass.Constexpr, lane, tidx):",
        f"    best, at = cutlass.Float32({start}), cutlass.Int32(COLUMNS)",
        "    fragment = cute.make_rmem_tensor((vector, STEPS), cutlass.Float32)",
        "    fragment.store(values)",
        "    for step in cutlass.range_constexpr(STEPS):",
        "        for k in cutlass.range_constexpr(vector):",
        "            column = (step * THREADS_PER_ROW + lane) * vector + k",
        "            value = fragment[k, step]",
        "            if column < COLUMNS and closer(value, column, best, at):",
        "                best, at = value, column",
        "    offset = min(THREADS_PER_ROW, 32) // 2",
        "    for _ in cutlass.range_constexpr(5):",
        "        if cutlass.const_expr(offset > 0):",
        "            other = cute.arch.shuffle_sync_bfly(best, offset=offset)",
        "            where = cute.arch.shuffle_sync_bfly(at, offset=offset)",
        "            if closer(other, where, best, at):",
        "                best, at = other, where",
        "        offset = offset // 2",
        "    if cutlass.const_expr(WARPS_PER_ROW > 1):",
        "        row, warp = tidx // THREADS_PER_ROW, tidx % THREADS_PER_ROW // 32",
        "        if tidx % 32 == 0:",
        "            sRow[slot, row, warp] = best",
        "            sRow[slot + 1, row, warp] = at.to(cutlass.Float32)",
        "        cute.arch.sync_threads()",
        "        for k in cutlass.range_constexpr(WARPS_PER_ROW):",
        "            other, where = sRow[slot, row, k], sRow[slot + 1, row, k].to(cutlass.Int32)",
        "            if closer(other, where, best, at):",
        "                best, at = other, where",
        "    return at",
        "",
    ]
