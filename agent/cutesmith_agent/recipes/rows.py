"""The row family: reductions over the last dimensions with whatever pointwise work stands before, between and after.

A row fits in registers here and is read once: a group of threads holds it, reduces by shuffles and, beyond a warp,
through shared memory. `long_rows` covers the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .accesses import Access, Tensors, pointer, tensors_of
from .contract import Unsupported
from .ir import Expr, Load, Pick, Reduce, arguments, walk
from .layout import nested, vector_width, widest_vector
from .lowering import Program
from .online import rough_powers
from .passes import COMBINE, NEUTRAL, REDUCE_OP, name_pick
from .pointwise import KernelText, parameters
from .row_helpers import row_helpers
from .text import NOUNS, Writer, helpers, loads_of

REGISTERS = 64  # fp32 values of a row that one thread keeps
REGISTERS_OF_1024 = 40  # the same where a block has 1024 threads, which have 64 registers each


@dataclass(frozen=True)
class RowSchedule:
    vector: int  # elements per access
    threads_per_row: int
    rows_per_block: int
    unroll: int  # accesses in flight per thread and tensor, for rows that do not fit in registers; 0: the row fits
    preload: bool = False  # every operand is read before the first reduction, at the price of registers
    by_priority: bool = False  # rows bypass the L1 cache, which then keeps the operands that all rows share

    @property
    def choices(self) -> dict[str, int]:
        """What is on of the choices that no constant of the file shows."""
        return {name: 1 for name in ("preload", "by_priority") if getattr(self, name)}

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        shared = (
            ("VECTOR", self.vector, "elements per access, 16 bytes where the tensors are aligned"),
            ("THREADS_PER_ROW", self.threads_per_row, "threads that share a row"),
            ("ROWS_PER_BLOCK", self.rows_per_block, "rows of a block"),
        )
        return (
            shared
            if not self.unroll
            else (*shared, ("UNROLL", self.unroll, "accesses in flight per thread and tensor"))
        )


def schedules(program: Program) -> tuple[RowSchedule, ...]:
    """Best guess first; measured on H200: 128 threads a row are fastest up to 512 accesses of a row, 512 beyond."""
    vector = row_vector(program)
    chunks = program.columns // vector
    fits = [t for t in (8, 16, 32, 64, 128, 256, 512) if -(-chunks // t) * vector <= REGISTERS]
    fits += [1024] if -(-chunks // 1024) * vector <= REGISTERS_OF_1024 else []
    if not fits:
        scale = min(max(4 // vector, 1), 4)  # narrow accesses: more of them in flight
        return tuple(RowSchedule(vector, t, 1, u * scale) for t, u in ((512, 4), (1024, 2), (256, 4), (512, 2)))
    target = 32 if chunks <= 256 else 128 if chunks <= 512 else 512
    ideal = [t for t in fits if t >= min(target, _next_power(chunks))] or fits[-1:]
    order = sorted(set(fits), key=lambda t: (abs(math.log2(t / ideal[0])), t))[:4]
    held = tuple(RowSchedule(vector, t, max(1, 128 // t), 0) for t in order if t <= max(32, _next_power(chunks)))
    return (*_streamed(program, vector), *_preloaded(program, held))


def _preloaded(program: Program, held: tuple[RowSchedule, ...]) -> tuple[RowSchedule, ...]:
    """The two best guesses also with early loads, where some operand is first needed after a reduction."""
    late = {e for s in program.stores for e in walk((s.expr,)) if isinstance(e, Load) and e.per_column}
    early = {e for s in program.stores for r in walk((s.expr,)) if isinstance(r, Reduce) for e in walk((r.arg,))}
    if late <= early:
        return held
    return tuple(each for one in held[:2] for each in (one, replace(one, preload=True))) + held[2:]


def _streamed(program: Program, vector: int) -> tuple[RowSchedule, ...]:
    """Reading without keeping: for results of the row alone, fewer registers mean more rows in flight."""
    roots = tuple(s.expr for s in program.stores)
    once = all(e.arg.level == 0 and e.kind in NEUTRAL for e in walk(roots) if isinstance(e, Reduce))
    if not once or any(s.per_column for s in program.stores) or program.columns // vector < 256:
        return ()
    plain = tuple(RowSchedule(vector, t, 1, u) for t, u in ((128, 4), (256, 2), (128, 2), (64, 4)))
    if not any(access.is_shared for access in tensors_of(program, loads_of(roots)).loads):
        return plain
    return (*(RowSchedule(vector, t, 1, u, by_priority=True) for t, u in ((512, 1), (256, 2))), *plain)


def _next_power(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def row_vector(program: Program) -> int:
    vector = widest_vector(program)
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    for access in tensors.views:
        if access.per_column:
            vector = vector_width(access.columns, access.offset, access.row_strides, vector, closed=True)
    return vector


@dataclass
class RowEmitter:
    """Writes the body of a row kernel for one schedule."""

    program: Program
    schedule: RowSchedule
    tensors: Tensors
    writer: Writer
    slots: int = 0  # shared-memory slots, one per reduction

    def __post_init__(self) -> None:
        self.roots = tuple(s.expr for s in self.program.stores)
        self.writer.count(self.roots)
        self.access = {id(a.load): a for a in self.tensors.loads}
        for e in walk(self.roots):
            if isinstance(e, Reduce):
                self.writer.uses.update({id(e.arg): 1})

    def straight(self) -> list[str]:
        """Everything for a row that stays in registers: loads as late as their first use, then reductions."""
        for store in self.tensors.stores:
            assert store.store is not None
            self._prepare(store.store.expr)
            self._store(store, store.store.expr)
        return self.writer.lines

    def _prepare(self, root: Expr) -> None:
        """Statements for every load and reduction under `root`, in order."""
        pending = [e for e in walk((root,)) if isinstance(e, Load | Pick | Reduce) and id(e) not in self.writer.names]
        for e in sorted(pending, key=lambda e: (self._need(e), isinstance(e, Pick), isinstance(e, Reduce))):
            if isinstance(e, Pick):
                name_pick(e, self.access[id(e.load)], self.writer)
            elif isinstance(e, Load):
                if not e.picked:
                    self._load(e)
            else:
                self._reduce(e)

    def _need(self, e: Expr) -> int:
        """The level at which a load is first read, or at which a reduction runs."""
        if isinstance(e, Reduce):
            return e.arg.level
        if isinstance(e, Pick):
            return e.level
        if self.schedule.preload:
            return 0
        users = [u for u in walk(self.roots) if any(a is e for a in arguments(u))]
        return min((u.level - 1 if isinstance(u, Reduce) else u.level for u in users), default=0)

    def _load(self, e: Load) -> None:
        access = self.access[id(e)]
        name = self.writer.name(e, access.local)
        if access.per_column:
            self.writer.lines.append(f"{name} = load({access.gmem}, row, lane)")
        else:
            self.writer.lines.append(f"{name} = {access.gmem}[row, 0].to(cutlass.Float32)")

    def _reduce(self, e: Reduce) -> None:
        arg = self.writer.write(e.arg)
        name = self.writer.name(e, NOUNS[e.kind])
        if not e.arg.per_column:
            raise Unsupported(f"no recipe covers a {e.kind} of a value that is the same in every column")
        slot = self.slots
        if e.kind in ("argmax", "argmin"):
            self.slots += 2
            self.writer.lines.append(f"{name} = find_{e.kind}({arg}, sRow, {slot}, lane, tidx)")
            return
        self.slots += 1
        masked = arg if self._whole() else f"keep({arg}, lane, {NEUTRAL[e.kind]})"
        how = f"cute.ReductionOp.{REDUCE_OP[e.kind]}, {COMBINE[e.kind]}, {NEUTRAL[e.kind]}"
        self.writer.lines.append(f"{name} = reduce_row({masked}, {how}, sRow, {slot}, tidx)")

    def _whole(self) -> bool:
        chunks = self.program.columns // self.schedule.vector
        return chunks % self.schedule.threads_per_row == 0

    def _store(self, store: Access, expr: Expr) -> None:
        value = self.writer.write(expr)
        if store.per_column:
            self.writer.lines.append(f"store({value}, {store.gmem}, row, lane, live)")
        else:
            text = f"{value}" if isinstance(expr, Reduce) and expr.kind.startswith("arg") else value
            self.writer.lines += [
                "if live and lane == 0:",
                f"    {store.gmem}[row, 0] = ({text}).to({store.gmem}.element_type)",
            ]


def emit(program: Program, schedule: RowSchedule, name: str, *, fast: bool) -> KernelText:
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    emitter = RowEmitter(program, schedule, tensors, Writer(fast, rough_powers=rough_powers(roots)))
    body = emitter.straight()
    kinds = {e.kind for e in walk(roots) if isinstance(e, Reduce)}
    lines = [
        "CHUNKS = COLUMNS // vector  # accesses of a row",
        "STEPS = -(-CHUNKS // THREADS_PER_ROW)  # accesses of a thread",
        "WARPS_PER_ROW = max(THREADS_PER_ROW // 32, 1)",
        "",
        *helpers(body),
        *row_helpers(kinds, stores=any(a.per_column for a in tensors.stores)),
        *_kernel(tensors, name, body, emitter.slots),
        "",
        *host(program, tensors, name),
    ]
    return KernelText(tuple(lines), tensors)


def row_of_thread(tensors: Tensors) -> list[str]:
    """Which row a thread works on, and its lane among the row's threads."""
    return [
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        f"    rows = cute.size({tensors.stores[0].gmem}, mode=[0])",
        "    lane = tidx % THREADS_PER_ROW",
        "    at = bidx * ROWS_PER_BLOCK + tidx // THREADS_PER_ROW",
        "    live = at < rows",
        "    row = cutlass.min(at, rows - 1)  # threads past the last row redo it and store nothing",
    ]


def _kernel(tensors: Tensors, name: str, body: list[str], slots: int) -> list[str]:
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        *row_of_thread(tensors),
        *(
            [
                "    smem = cutlass.memory.SmemAllocator()",
                f"    layout = cute.make_layout(({slots}, ROWS_PER_BLOCK, WARPS_PER_ROW))",
                "    sRow = smem.allocate_tensor(cutlass.Float32, layout, 4)",
            ]
            if slots
            else []
        ),
        *(f"    {line}" for line in body),
    ]


_GRID = "grid = [cute.ceil_div(rows, ROWS_PER_BLOCK), 1, 1]"
_LAUNCH = "grid=grid, block=[THREADS_PER_ROW * ROWS_PER_BLOCK, 1, 1], stream=stream"


def host(
    program: Program, tensors: Tensors, name: str, *, grid: str | None = _GRID, launch: str = _LAUNCH
) -> list[str]:
    """`grid`: a line before the launch, where it needs one; `launch`: what the launch is given."""
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(tensors))
    size = count_of_rows(f"cute.size({tensors.stores[0].param})", program, tensors)
    views = [f"    {a.gmem} = {row_layout(program, a)}" for a in tensors.views]
    return [
        "@cute.jit",
        f"def {name}({arguments}, stream: CUstream):",
        f"    rows = {size}",
        *views,
        *([f"    {grid}"] if grid else []),
        f"    {name}_kernel({tensors.gmem}).launch(",
        f"        {launch}",
        "    )",
        "",
        f"return {name}",
    ]


def count_of_rows(size: str, program: Program, tensors: Tensors) -> str:
    """As text, from the first output's size."""
    first = tensors.stores[0]
    pieces = sum(1 for s in tensors.stores if s.param == first.param)
    inner = pieces * (program.columns if first.per_column else 1)
    return size + (f" // {inner}" if inner > 1 else "")


def row_layout(program: Program, access: Access) -> str:
    """The host's view of a tensor as (rows, columns); a broadcast is a stride of zero."""
    row_shape, row_stride = nested(access.rows, "rows")
    shape, stride = nested(access.columns, str(program.columns if access.per_column else 1))
    if access.load is not None and access.load.picked:
        shape, stride = (str(n) for n in access.load.picked)
    layout = f"cute.make_layout(({row_shape}, {shape}), stride=({row_stride}, {stride}))"
    return f"cute.make_tensor({pointer(access)}, {layout})"
