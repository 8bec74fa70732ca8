"""Rows too long for registers, from sm_90 on: a cluster of blocks keeps a row in its shared memory and reads it once.

Each block holds a part of the row. A thread reads back only what it put there itself; what blocks tell each other are
the parts' results, through distributed shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .accesses import Access, Tensors, tensors_of
from .ir import Expr, Load, Reduce, arguments
from .layout import ITEMSIZE
from .long_rows import combine, flush, initial
from .lowering import Program
from .online import ONLINE
from .passes import LOAD, STORE, Group, PassText, Reader, groups, name_row_loads, pass_function, plain_read
from .pointwise import KernelText
from .rows import host, row_vector
from .text import Writer, helpers, loads_of

SHARED_BYTES = 224 << 10  # of a block's 227 KiB: the rest is for the parts' results
CLUSTERS = (2, 4, 8)  # blocks; larger clusters are not portable
_LAUNCH = "grid=[rows * CLUSTER, 1, 1], block=[THREADS_PER_ROW, 1, 1], cluster=[CLUSTER, 1, 1], stream=stream"


@dataclass(frozen=True)
class ClusterSchedule:
    vector: int
    threads: int
    unroll: int
    cluster: int

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("VECTOR", self.vector, "elements per access, 16 bytes where the tensors are aligned"),
            ("THREADS_PER_ROW", self.threads, "threads of a block"),
            ("UNROLL", self.unroll, "accesses in flight per thread and tensor"),
            ("CLUSTER", self.cluster, "blocks that share a row"),
        )


def schedules(program: Program) -> tuple[ClusterSchedule, ...]:
    """Those of the smallest cluster that can hold a row, then of the largest, which leaves room for others' blocks.

    None where a row need not be read twice or is too long."""
    tensors = tensors_of(program, loads_of(tuple(s.expr for s in program.stores)))
    kept = _kept(program, tensors)
    vector = row_vector(program)
    chunks = -(-program.columns // vector)
    for cluster in CLUSTERS if kept else ():
        if -(-chunks // cluster) * vector * sum(ITEMSIZE[a.dtype] for a in kept) <= SHARED_BYTES:
            smallest = tuple(
                ClusterSchedule(vector, t, u, cluster) for t, u in ((512, 4), (1024, 2), (1024, 4), (512, 8))
            )
            return smallest if cluster == CLUSTERS[-1] else (*smallest, *_largest(vector))
    return ()


def _largest(vector: int) -> tuple[ClusterSchedule, ...]:
    return tuple(ClusterSchedule(vector, t, u, CLUSTERS[-1]) for t, u in ((512, 4), (256, 8)))


def _stages(program: Program) -> list[tuple[Expr, ...]]:
    """What each reading of the row computes: groups of reductions, then the results that have a value per column."""
    roots = tuple(s.expr for s in program.stores)
    written = tuple(s.expr for s in program.stores if s.per_column)
    return [*(tuple(r.arg for r in group.reductions) for group in groups(roots)), written]


def _kept(program: Program, tensors: Tensors) -> tuple[Access, ...]:
    """The operands that more than one reading needs and that rows do not share."""
    needed = [_column_loads(stage) for stage in _stages(program)]
    return tuple(
        a
        for a in tensors.loads
        if a.per_column and not a.is_shared and sum(a.load in loads for loads in needed if a.load is not None) > 1
    )


def _column_loads(roots: tuple[Expr, ...]) -> set[Load]:
    """The loads under the roots, not looking below reductions."""
    found: set[Load] = set()
    stack: list[Expr] = list(roots)
    while stack:
        e = stack.pop()
        if isinstance(e, Load):
            found.add(e)
        elif not isinstance(e, Reduce):
            stack.extend(arguments(e))
    return found


def emit(program: Program, name: str, *, fast: bool) -> KernelText:
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    kept = _kept(program, tensors)
    scalars = Writer(fast)
    scalars.count(roots)
    functions: list[str] = []
    body: list[str] = []
    slots, seen = 0, set[str]()
    for number, group in enumerate(groups(roots), 1):
        text = pass_function(f"pass_{number}", group, (), tensors, scalars, _reader(kept, seen))
        functions += text.lines
        body += flush(scalars) + _loop(f"pass_{number}", text, initial(group, text))
        body += ["cute.arch.cluster_wait()  # every block runs: their shared memory can be written"] * (number == 1)
        slots = combine(group, text, scalars, slots, "sRow, arrived")
        body += flush(scalars)
        seen |= {a.gmem for a in kept if f"keep({a.gmem}" in "".join(text.lines)}
    body += _results(tensors, scalars, functions, _reader(kept, seen))
    lines = [
        "CHUNKS = COLUMNS // vector  # accesses of a row",
        "PART = -(-CHUNKS // CLUSTER)  # those of a block; the last block may have fewer",
        "WHOLE = max(CHUNKS - (CLUSTER - 1) * PART, 0) // (THREADS_PER_ROW * UNROLL)  # full rounds of any block",
        "WARPS = THREADS_PER_ROW // 32",
        "",
        *LOAD,
        *_KEEP,
        *helpers(functions),
        *(STORE if any(a.per_column for a in tensors.stores) else ()),
        *(ONLINE if any(g.online for g in groups(roots)) else ()),
        *_ACROSS,
        *functions,
        *_kernel(tensors, kept, name, body, slots),
        "",
        *host(program, tensors, name, grid=None, launch=_LAUNCH),
    ]
    return KernelText(tuple(lines), tensors)


def _reader(kept: Sequence[Access], seen: set[str]) -> Reader:
    """The first reading of an operand that is kept puts it into shared memory, later ones take it from there."""

    def read(access: Access) -> tuple[str, tuple[str, ...]]:
        if access not in kept:
            return plain_read(access)
        shared = _shared(access)
        if access.gmem in seen:
            return f"recall({shared}, chunk - first, width, steps, stride)", (shared, "first")
        call = f"keep({access.gmem}, {shared}, row, chunk, first, width, steps, stride)"
        return call, (access.gmem, shared, "first")

    return read


def _shared(access: Access) -> str:
    return f"s{access.gmem[1:]}"


def _loop(name: str, text: PassText, initial: list[str]) -> list[str]:
    kept = f"{', '.join(text.accumulators)} = " if text.accumulators else ""
    operands = ", ".join((*text.operands, *text.accumulators))
    return [
        *initial,
        "for tile in cutlass.range(WHOLE):",
        "    chunk = first + tile * THREADS_PER_ROW * UNROLL + lane",
        f"    {kept}{name}(row, chunk, vector, UNROLL, THREADS_PER_ROW, {operands})",
        "for chunk in cutlass.range(first + WHOLE * THREADS_PER_ROW * UNROLL + lane, last, THREADS_PER_ROW):",
        f"    {kept}{name}(row, chunk, vector, 1, THREADS_PER_ROW, {operands})",
    ]


def _results(tensors: Tensors, scalars: Writer, functions: list[str], read: Reader) -> list[str]:
    """The last reading writes what has a value per column; one thread of the cluster writes what has one per row."""
    columns = tuple(a for a in tensors.stores if a.per_column)
    lines: list[str] = []
    if columns:
        text = pass_function("write", Group((), {}), columns, tensors, scalars, read)
        functions += text.lines
        lines += flush(scalars) + _loop("write", text, [])
    for access in tensors.stores:
        if not access.per_column and access.store is not None:
            name_row_loads((access.store.expr,), tensors, scalars)
            value = scalars.write(access.store.expr)
            lines += [
                *flush(scalars),
                "if part == 0 and lane == 0:",
                f"    {access.gmem}[row, 0] = ({value}).to({access.gmem}.element_type)",
            ]
    return lines


_KEEP = (
    "def keep(g, s, row, chunk, first, width, steps, stride):",
    '    """As `load`; the values also go to shared memory, where this thread finds them again."""',
    "    tiles = cute.zipped_divide(g[row, None], (width,))",
    "    places = cute.zipped_divide(s, (width,))",
    "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
    "    for step in range(steps):",
    "        cute.autovec_copy(tiles[None, chunk + step * stride], fragment[None, step])",
    "    for step in range(steps):",
    "        cute.autovec_copy(fragment[None, step], places[None, chunk - first + step * stride])",
    "    return fragment.load().to(cutlass.Float32)",
    "",
    "def recall(s, place, width, steps, stride):",
    "    places = cute.zipped_divide(s, (width,))",
    "    fragment = cute.make_rmem_tensor((width, steps), s.element_type)",
    "    for step in range(steps):",
    "        cute.autovec_copy(places[None, place + step * stride], fragment[None, step])",
    "    return fragment.load().to(cutlass.Float32)",
    "",
)
_ACROSS = (
    "@cute.jit",
    "def across(value, combine: cutlass.Constexpr, sRow: cute.Tensor, arrived, slot: cutlass.Constexpr, tidx):",
    '    """One value per thread to one per row: shuffles, shared memory, then the cluster\'s; one fixed order."""',
    "    value = cute.arch.warp_reduction(value, combine)",
    "    if tidx % 32 == 0:",
    "        sRow[slot, tidx // 32] = value",
    "    cute.arch.sync_threads()",
    "    value = cute.arch.warp_reduction(sRow[slot, tidx % WARPS], combine, threads_in_group=WARPS)",
    "    if tidx < CLUSTER:  # thread k tells block k",
    "        mine = cute.domain_offset((slot, WARPS + cute.arch.block_idx_in_cluster()), sRow)",
    "        cute.arch.store_async_dsmem(mine.iterator, value.bitcast(cutlass.Int32), arrived + slot, tidx)",
    "    cute.arch.mbarrier_wait(arrived + slot, 0)",
    "    return cute.arch.warp_reduction(sRow[slot, WARPS + tidx % CLUSTER], combine, threads_in_group=CLUSTER)",
    "",
)


def _kernel(tensors: Tensors, kept: tuple[Access, ...], name: str, body: list[str], slots: int) -> list[str]:
    rooms = [
        f"    {_shared(a)} = smem.allocate_tensor({a.gmem}.element_type, cute.make_layout(PART * vector), 16)"
        for a in kept
    ]
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    lane, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        "    row, part = bidx // CLUSTER, bidx % CLUSTER",
        "    tidx = lane",
        "    first = part * PART",
        "    last = cutlass.min(first + PART, CHUNKS)",
        "    smem = cutlass.memory.SmemAllocator()",
        f"    layout = cute.make_layout(({slots}, WARPS + CLUSTER), stride=(WARPS + CLUSTER, 1))",
        "    sRow = smem.allocate_tensor(cutlass.Float32, layout, 4)",
        *rooms,
        f"    arrived = smem.allocate_array(cutlass.Int64, {slots})",
        "    if lane == 0:",
        f"        for slot in cutlass.range_constexpr({slots}):",
        "            cute.arch.mbarrier_init(arrived + slot, 1)",
        "            cute.arch.mbarrier_arrive_and_expect_tx(arrived + slot, 4 * CLUSTER)",
        "        cute.arch.mbarrier_init_fence()",
        "    cute.arch.cluster_arrive_relaxed()",
        *(f"    {line}" for line in body),
    ]
