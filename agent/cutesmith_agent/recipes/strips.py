"""Windows in two or three dimensions, a strip of results a thread: rows that windows share are read once.

A strip is some results below each other. A thread goes down the input rows of its strip and gives each to every
window that it belongs to. `by_columns`: largest elements and sums are first taken down the columns, a few neighbouring
ones a thread in wide accesses, and then, through shared memory, along the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .accesses import Tensors, tensors_of
from .ir import Pool
from .layout import widest_vector
from .lowering import Program
from .pointwise import KernelText, Operand, host_lines, maths, operands_of, pools_of
from .strip import MOST_WEIGHTS, Strip, in_planes, writes_in_order
from .strip_text import Element, column_functions, strip_functions
from .text import Writer, helpers, loads_of

SHARED_BYTES = 48 << 10  # of a block, without asking for more


@dataclass(frozen=True)
class StripSchedule:
    rows: int  # results of a strip
    threads: int  # of a block
    vector: int = 1  # neighbouring columns of a thread, where columns come first
    lanes: int = 0  # threads along the columns; 0: a thread for each column of results

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        shared = (("THREADS", self.threads, "threads per block"), ("ROWS", self.rows, "results of a thread's strip"))
        if not self.lanes:
            return (*shared, ("VECTOR", 1, "elements per access"))
        return (
            *shared,
            ("VECTOR", self.vector, "neighbouring columns of a thread: an access"),
            ("LANES", self.lanes, "threads side by side along a row of the input"),
        )


def pool_of(program: Program) -> Pool | None:
    """The only window of a kernel, if its results are rows of planes."""
    roots = tuple(s.expr for s in program.stores)
    pools = pools_of(roots)
    last = len(program.sizes) - 1
    if program.has_reductions or len(pools) != 1 or len(pools[0].windows) < 2 or last < 1 or not in_planes(pools[0]):
        return None
    pool = pools[0]
    outer = [k for k, _ in pool.terms] + [k for w in pool.windows[:-2] for k, _ in w.terms]
    if pool.weight is not None:
        outer += [k for k, stride in enumerate(pool.weight.strides) if stride]
        if math.prod(w.taps for w in pool.windows) > MOST_WEIGHTS:
            return None
    places = [tuple(k for k, _ in w.terms) for w in pool.windows[-2:]]
    fits = places == [(last - 1,), (last,)] and all(k < last - 1 for k in outer)
    return pool if fits and writes_in_order(program) else None


def schedules(program: Program) -> tuple[StripSchedule, ...]:
    """Best guess first: columns first where windows are far apart, a thread a column where they overlap."""
    pool = pool_of(program)
    if pool is None:
        return ()
    strip = Strip.of(program, pool)
    rows = [r for r in (8, 4, 16, 2, 1) if r <= max(strip.height, 1)]
    by_column = tuple(StripSchedule(r, 256) for r in rows[:3])
    if pool.weight is not None:
        return (*by_column, StripSchedule(rows[0], 128))
    columns = _by_columns(program, pool, strip)
    if pool.element is not None:
        return columns
    return columns if columns and strip.stride_y >= strip.taps_y else (*columns, *by_column[:2])


def _by_columns(program: Program, pool: Pool, strip: Strip) -> tuple[StripSchedule, ...]:
    vector = _vector(program, pool)
    chunks = -(-strip.width_in // vector)
    found = []
    shapes = ((1, 256), (2, 256), (1, 512)) if strip.stride_y >= strip.taps_y else ((4, 256), (8, 256), (2, 256))
    for rows, threads in shapes:
        lanes = min(1 << max(chunks - 1, 0).bit_length(), threads)
        groups = threads // lanes
        if rows <= strip.height and groups * rows * chunks * vector * 4 <= SHARED_BYTES:
            found.append(StripSchedule(rows, threads, vector, lanes))
    return tuple(found)


def _vector(program: Program, pool: Pool) -> int:
    """Columns of an access that no row of the input straddles."""
    row = pool.windows[-2].stride
    strides = (row, *(w.stride for w in pool.windows[:-1]), *(c for _, c in pool.terms))
    return math.gcd(widest_vector(program), *strides) if row % 2 == 0 else 1


def emit(program: Program, schedule: StripSchedule, name: str, *, fast: bool) -> KernelText:
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    operands = operands_of(roots, tensors)
    pool = pool_of(program)
    assert pool is not None
    strip = Strip.of(program, pool, schedule.rows)
    windows = (
        column_functions(strip, element_of(pool, tensors, fast=fast)) if schedule.lanes else strip_functions(strip)
    )
    kernel = _columns_kernel if schedule.lanes else _strips_kernel
    lines = (
        *strip.constants(columns=bool(schedule.lanes)),
        "",
        *maths(roots, operands, fast=fast),
        "",
        *windows,
        *(_OPERAND if any(_kind(o) == "varies" for o in operands) else ()),
        *_store(),
        *kernel(tensors, operands, strip, name),
        "",
        *host_lines(program, tensors, roots, name, _grid(schedule, tensors)),
    )
    return KernelText(lines, tensors)


def element_of(pool: Pool, tensors: Tensors, *, fast: bool) -> Element | None:
    """The function for what windows take of their elements."""
    if pool.element is None:
        return None
    writer = Writer(fast)
    places = {id(a.load): a for a in tensors.loads}
    locals_ = [writer.name(load, places[id(load)].local) for load in (pool.load, *pool.needed)]
    writer.count((pool.element,))
    result = writer.write(pool.element)
    lines = (
        *helpers([*writer.lines, result]),
        f"def element({', '.join(locals_)}):",
        '    """What windows take of each element, in fp32."""',
        *(f"    {line}" for line in writer.lines),
        f"    return {result}",
        "",
    )
    return Element(lines, tuple(places[id(load)].gmem for load in pool.needed))


_OPERAND = (
    "def operand(g, at, first):",
    '    """The elements of `g` that the strip\'s results need, in fp32."""',
    "    fragment = cute.make_rmem_tensor(ROWS, cutlass.Float32)",
    "    for r in range(ROWS):",
    "        fragment[r] = g[at + cutlass.min(r, HEIGHT - 1 - first) * WIDTH].to(cutlass.Float32)",
    "    return fragment.load()",
    "",
)


def _store() -> list[str]:
    return [
        "@cute.jit",
        "def store(result, g: cute.Tensor, at, first):",
        "    fragment = cute.make_rmem_tensor(ROWS, g.element_type)",
        "    fragment.store(result.to(g.element_type))",
        "    for r in cutlass.range_constexpr(ROWS):",
        "        if cutlass.const_expr(HEIGHT % ROWS == 0):",
        "            g[at + r * WIDTH] = fragment[r]",
        "        else:",
        "            if first + r < HEIGHT:",
        "                g[at + r * WIDTH] = fragment[r]",
        "",
    ]


def _operand(o: Operand, windows: str) -> str:
    texts = {
        "window": windows,
        "varies": f"operand({o.access.gmem}, at, first)",
        "of a plane": f"cute.full(ROWS, {o.access.gmem}[at].to(cutlass.Float32), cutlass.Float32)",
        "single": f"{o.access.gmem}[0].to(cutlass.Float32)",
    }
    return texts[_kind(o)]


def _kind(o: Operand) -> Literal["varies", "of a plane", "single", "window"]:
    if o.pool is not None or o.access.load is None:
        return "window"
    if not o.access.per_column:
        return "single"
    return "varies" if any(o.access.load.strides[-2:]) else "of a plane"


def _strips_kernel(tensors: Tensors, operands: tuple[Operand, ...], strip: Strip, name: str) -> list[str]:
    x = next(o for o in operands if o.pool is not None)
    weight = f"{x.weight.gmem}, " if x.weight is not None else ""
    windows = f"windows({x.access.gmem}, {weight}outer, first, x)"
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        "    i = bidx * THREADS + tidx",
        f"    if i < cute.size({tensors.stores[0].gmem}) // (HEIGHT * WIDTH) * STRIPS * WIDTH:",
        "        x, strip = i % WIDTH, i // WIDTH",
        "        first, outer = strip % STRIPS * ROWS, strip // STRIPS",
        "        at = (outer * HEIGHT + first) * WIDTH + x",
        f"        {_results(tensors)} = compute({', '.join(_operand(o, windows) for o in operands)})",
        *(f"        store({s.local}, {s.gmem}, at, first)" for s in tensors.stores),
    ]


def _columns_kernel(tensors: Tensors, operands: tuple[Operand, ...], strip: Strip, name: str) -> list[str]:
    x = next(o for o in operands if o.pool is not None)
    windows = "windows(sColumns, group, outer, first, x)"
    places = {id(a.load): a.gmem for a in tensors.loads}
    needed = [places[id(load)] for load in x.pool.needed] if x.pool is not None else []
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        "    lane, group = tidx % LANES, tidx // LANES",
        f"    strips = cute.size({tensors.stores[0].gmem}) // (HEIGHT * WIDTH) * STRIPS",
        "    at = bidx * GROUPS + group",
        "    strip = cutlass.min(at, strips - 1)  # threads past the last strip redo it and store nothing",
        "    first, outer = strip % STRIPS * ROWS, strip // STRIPS",
        "    smem = cutlass.memory.SmemAllocator()",
        "    layout = cute.make_ordered_layout((GROUPS, ROWS, CHUNKS * vector), order=(2, 1, 0))",
        "    sColumns = smem.allocate_tensor(cutlass.Float32, layout, 16)",
        "    for chunk in cutlass.range(lane, CHUNKS, LANES):",
        f"        columns({', '.join((x.access.gmem, *needed))}, sColumns, group, outer, first, chunk)",
        "    cute.arch.sync_threads()",
        "    for x in cutlass.range(lane, WIDTH if at < strips else 0, LANES):",
        "        at = (outer * HEIGHT + first) * WIDTH + x",
        f"        {_results(tensors)} = compute({', '.join(_operand(o, windows) for o in operands)})",
        *(f"        store({s.local}, {s.gmem}, at, first)" for s in tensors.stores),
    ]


def _results(tensors: Tensors) -> str:
    return ", ".join(s.local for s in tensors.stores)


def _grid(schedule: StripSchedule, tensors: Tensors) -> str:
    strips = f"cute.size({tensors.stores[0].param}) // (HEIGHT * WIDTH) * STRIPS"
    return f"cute.ceil_div({strips}, GROUPS)" if schedule.lanes else f"cute.ceil_div({strips} * WIDTH, THREADS)"
