"""Rows too long for registers, from sm_90 on: a cluster of blocks keeps a row in its shared memory and reads it once.

Each block holds a part of the row. A thread reads back only what it put there itself; what blocks tell each other are
the parts' results, through distributed shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .accesses import Access, Tensors, tensors_of
from .cluster_schedules import kept_accesses
from .long_rows import combine, flush, initial
from .lowering import Program
from .online import MOMENTS, ONLINE
from .passes import LOAD, STORE, Group, PassText, Reader, groups, name_row_loads, pass_function, plain_read
from .pointwise import KernelText
from .rows import host
from .text import Writer, helpers, loads_of

_LAUNCH = "grid=[rows * CLUSTER, 1, 1], block=[THREADS_PER_ROW, 1, 1], cluster=[CLUSTER, 1, 1], stream=stream"


def emit(program: Program, name: str, *, fast: bool, partly: bool = False) -> KernelText:
    """`partly`: the first KEPT rounds of a row stay in shared memory, the others are read again."""
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    emitter = ClusterEmitter(program, tensors, kept_accesses(program, tensors), fast, partly)
    emitter.emit()
    lines = [
        "CHUNKS = COLUMNS // vector  # accesses of a row",
        "PART = -(-CHUNKS // CLUSTER)  # those of a block; the last block may have fewer",
        "WHOLE = max(CHUNKS - (CLUSTER - 1) * PART, 0) // (THREADS_PER_ROW * UNROLL)  # full rounds of any block",
        *(["HELD = KEPT * THREADS_PER_ROW * UNROLL  # accesses of a block in shared memory"] if partly else []),
        "WARPS = THREADS_PER_ROW // 32",
        "",
        *LOAD,
        *_KEEP,
        *helpers(emitter.functions),
        *(STORE if any(a.per_column for a in tensors.stores) else ()),
        *(ONLINE if any(g.online for g in emitter.groups) else ()),
        *(MOMENTS if any(g.moments for g in emitter.groups) else ()),
        *_ACROSS,
        *emitter.functions,
        *_kernel(emitter, name),
        "",
        *host(program, tensors, name, grid=None, launch=_LAUNCH),
    ]
    return KernelText(tuple(lines), tensors)


@dataclass
class ClusterEmitter:
    """Writes the functions and the body of a kernel."""

    program: Program
    tensors: Tensors
    kept: tuple[Access, ...]
    fast: bool
    partly: bool

    def emit(self) -> None:
        roots = tuple(s.expr for s in self.program.stores)
        self.scalars = Writer(self.fast)
        self.scalars.count(roots)
        self.functions: list[str] = []
        self.body: list[str] = []
        self.slots = 0
        self.groups = groups(roots, columns=self.program.columns if self.partly else 0)
        self.seen: set[str] = set()
        for number, group in enumerate(self.groups, 1):
            text = self._stage(f"pass_{number}", group, ())
            self.body += ["cute.arch.cluster_wait()  # every block runs: their shared memory can be written"] * (
                number == 1
            )
            self.slots = combine(group, text, self.scalars, self.slots, "sRow, arrived")
            self.body += flush(self.scalars)
            self.seen |= {a.gmem for a in self.kept if f"keep({a.gmem}" in "".join(text.lines)}
        self._results()

    def _stage(self, name: str, group: Group, stores: tuple[Access, ...]) -> PassText:
        """One reading of the block's part of a row."""
        read = _reader(self.kept, self.seen)
        text = pass_function(name, group, stores, self.tensors, self.scalars, read)
        self.functions += text.lines
        self.body += flush(self.scalars)
        start = initial(group, text)
        if not self.partly:
            self.body += _loop(name, text, start)
            return text
        again = pass_function(f"{name}_again", group, stores, self.tensors, self.scalars)
        self.functions += again.lines
        self.body += [*start, *_rounds(name, text, "KEPT")]
        self.body += [*_rounds(f"{name}_again", again, "KEPT, WHOLE"), *_rest(f"{name}_again", again)]
        return text

    def _results(self) -> None:
        """The last reading writes what has a value per column; one thread of the cluster what has one per row."""
        columns = tuple(a for a in self.tensors.stores if a.per_column)
        if columns:
            self._stage("write", Group((), {}), columns)
        for access in self.tensors.stores:
            if not access.per_column and access.store is not None:
                name_row_loads((access.store.expr,), self.tensors, self.scalars)
                value = self.scalars.write(access.store.expr)
                self.body += [
                    *flush(self.scalars),
                    "if part == 0 and lane == 0:",
                    f"    {access.gmem}[row, 0] = ({value}).to({access.gmem}.element_type)",
                ]


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
    return [*initial, *_rounds(name, text, "WHOLE"), *_rest(name, text)]


def _rounds(name: str, text: PassText, rounds: str) -> list[str]:
    """Rounds in which every thread has UNROLL accesses."""
    return [
        f"for tile in cutlass.range({rounds}):",
        "    chunk = first + tile * THREADS_PER_ROW * UNROLL + lane",
        f"    {_called(name, text, 'vector, UNROLL')}",
    ]


def _rest(name: str, text: PassText) -> list[str]:
    return [
        "for chunk in cutlass.range(first + WHOLE * THREADS_PER_ROW * UNROLL + lane, last, THREADS_PER_ROW):",
        f"    {_called(name, text, 'vector, 1')}",
    ]


def _called(name: str, text: PassText, steps: str) -> str:
    kept = f"{', '.join(text.accumulators)} = " if text.accumulators else ""
    return f"{kept}{name}(row, chunk, {steps}, THREADS_PER_ROW, {', '.join((*text.operands, *text.accumulators))})"


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


def _kernel(emitter: ClusterEmitter, name: str) -> list[str]:
    size, slots = "HELD" if emitter.partly else "PART", emitter.slots
    rooms = [
        f"    {_shared(a)} = smem.allocate_tensor({a.gmem}.element_type, cute.make_layout({size} * vector), 16)"
        for a in emitter.kept
    ]
    return [
        "@cute.kernel",
        f"def {name}_kernel({emitter.tensors.signature}):",
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
        *(f"    {line}" for line in emitter.body),
    ]
