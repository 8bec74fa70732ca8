"""A few very long rows, each shared by many blocks: where a block per row would leave most of the device idle.

A launch per group of reductions writes the blocks' parts into a workspace; every later launch begins by reducing the
parts of its row, and the last writes the results. The order of additions is fixed: results repeat bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .accesses import Access, Tensors, tensors_of
from .ir import Expr, Reduce, walk
from .long_rows import flush, initial
from .lowering import Program
from .one_row import MIN_COLUMNS, OneRowSchedule
from .online import MOMENTS, ONLINE
from .passes import (
    ACROSS,
    COMBINE,
    LOAD,
    NEUTRAL,
    STORE,
    Group,
    PassText,
    combined,
    groups,
    name_row_loads,
    pass_function,
)
from .pointwise import KernelText, parameters
from .rows import count_of_rows, row_layout, row_vector
from .text import Writer, helpers, loads_of

FEW = 64  # rows: a block for each leaves most of the device idle
FEWEST = 8  # rows: a block for each leaves nearly all of the device idle
SEVERAL = 2048  # rows: blocks for each may leave part of it idle in the end


def applies(program: Program, rows: int) -> bool:
    """Whether there are no more than `rows` rows, and each is long enough for several blocks."""
    reductions = [e for e in walk(tuple(s.expr for s in program.stores)) if isinstance(e, Reduce)]
    return program.rows <= rows and program.columns >= MIN_COLUMNS and all(r.kind in NEUTRAL for r in reductions)


def schedules(program: Program) -> tuple[OneRowSchedule, ...]:
    """As many blocks as an H200 runs at a time, with 32 or with 48 registers a thread, or several times as many, so
    that the last ones do not leave most of it idle; no more than a row has work for."""
    vector = row_vector(program)
    found = []
    for threads, resident, unroll in (
        (256, 32, 4),
        (512, 32, 2),
        (512, 8, 2),
        (512, 32, 1),
        (1024, 16, 1),
        (256, 8, 4),
    ):
        most = max(program.columns // (threads * vector * unroll), 1)
        blocks = min(max(132 * resident // program.rows, 2), most)
        found.append(OneRowSchedule(vector, threads, blocks, unroll))
    return tuple(dict.fromkeys(found))


@dataclass
class Stage:
    """One launch: what it accumulates or writes."""

    group: Group
    stores: tuple[Access, ...]
    functions: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    backwards: bool = False  # begins where the launch before it ended: that is still in the L2 cache
    loads: tuple[Access, ...] = ()
    slots: int = 0  # of shared memory


@dataclass
class FewRowsEmitter:
    program: Program
    fast: bool

    def __post_init__(self) -> None:
        self.roots = tuple(s.expr for s in self.program.stores)
        self.tensors = tensors_of(self.program, loads_of(self.roots))
        self.groups = groups(self.roots, columns=self.program.columns)
        places = (slot for slot in range(1 << 10))
        self.places = {id(r): next(places) for group in self.groups for r in group.all}
        self.counts = {id(r): next(places) for group in self.groups for r in group.moments.values()}

    @property
    def slots(self) -> int:
        """Values that a block writes for its row."""
        return len(self.places) + len(self.counts)

    def stages(self) -> list[Stage]:
        made = [Stage(group, ()) for group in self.groups] + [Stage(Group((), {}), self.tensors.stores)]
        for number, stage in enumerate(made):
            stage.backwards = number % 2 == 1
            self._emit(stage, f"pass_{number + 1}", self.groups[:number])
        return made

    def _emit(self, stage: Stage, name: str, known: tuple[Group, ...]) -> None:
        scalars = Writer(self.fast)
        scalars.count(self.roots)
        roots = (*(r.arg for r in stage.group.reductions), *(a.store.expr for a in stage.stores if a.store is not None))
        self._recombine(stage, known, roots, scalars)
        columns = tuple(a for a in stage.stores if a.per_column)
        if stage.group.reductions or columns:
            text = pass_function("write" if columns else name, stage.group, columns, self.tensors, scalars)
            stage.functions = text.lines
            start = initial(stage.group, text)
            stage.body += flush(scalars) + _loop("write" if columns else name, text, start, stage.backwards)
            self._give(stage, text, scalars)
        for access in stage.stores:
            if not access.per_column and access.store is not None:
                name_row_loads((access.store.expr,), self.tensors, scalars)
                value = scalars.write(access.store.expr)
                stage.body += [*flush(scalars), "if part == 0 and tidx == 0:"]
                stage.body.append(f"    {access.gmem}[row, 0] = ({value}).to({access.gmem}.element_type)")
        needed = set(re.findall(r"\w+", "\n".join(stage.body)))
        stage.loads = tuple(a for a in self.tensors.loads if a.gmem in needed)

    def _recombine(self, stage: Stage, known: tuple[Group, ...], roots: tuple[Expr, ...], scalars: Writer) -> None:
        """Statements that reduce the parts of a row, as earlier launches left them."""
        under = {id(e) for e in walk(roots)}
        for group in known:
            for r in group.reductions:
                second = group.online.get(id(r)) or group.moments.get(id(r))
                if id(r) in under or id(second) in under:
                    self._recombine_one(stage, r, group, scalars)

    def _recombine_one(self, stage: Stage, r: Reduce, group: Group, scalars: Writer) -> None:
        name = scalars.name(r, f"row_{r.kind}")
        stage.body += self._over_parts(stage, name, r.kind, f"gParts[{self.places[id(r)]}, row, k]")
        online, squares = group.online.get(id(r)), group.moments.get(id(r))
        if online is not None:
            part = f"gParts[{self.places[id(online)]}, row, k] * cute.math.exp(gParts[{self.places[id(r)]}, row, k] - "
            stage.body += self._over_parts(stage, scalars.name(online, "row_sum"), "sum", f"{part}finite({name}))")
        if squares is not None:
            own = ", ".join(f"gParts[{at}, row, k]" for at in self._moments(r, squares))
            part = f"about({own}, {name}, float(COLUMNS))"
            stage.body += self._over_parts(stage, scalars.name(squares, "squares"), "sum", part)

    def _moments(self, total: Reduce, squares: Reduce) -> tuple[int, int, int]:
        return self.places[id(total)], self.places[id(squares)], self.counts[id(squares)]

    def _over_parts(self, stage: Stage, name: str, kind: str, part: str) -> list[str]:
        stage.slots += 1
        return [
            f"{name} = cutlass.Float32({NEUTRAL[kind]})",
            "for k in cutlass.range(tidx, BLOCKS, THREADS_PER_ROW):",
            f"    {name} = {combined(kind, name, part)}",
            f"{name} = across({name}, {COMBINE[kind]}, sRow, {stage.slots - 1}, tidx)",
        ]

    def _give(self, stage: Stage, text: PassText, scalars: Writer) -> None:
        """The block's part of each reduction goes to the workspace."""
        names = iter(text.accumulators)
        for r in stage.group.reductions:
            own = next(names)
            online, squares = stage.group.online.get(id(r)), stage.group.moments.get(id(r))
            if online is not None:
                sums = next(names)
                top = scalars.fresh("top")
                stage.body += self._across(stage, top, own, "cute.math.max", self.places[id(r)])
                rescaled = f"{sums} * cute.math.exp({own} - finite({top}))"
                stage.body += self._across(stage, sums, rescaled, "operator.add", self.places[id(online)])
            elif squares is not None:
                spread, count = next(names), next(names)
                total_at, squares_at, count_at = self._moments(r, squares)
                whole, size = scalars.fresh("part_sum"), scalars.fresh("part_count")
                stage.body += self._across(stage, whole, own, "operator.add", total_at)
                stage.body += self._across(stage, size, count, "operator.add", count_at)
                about = f"about({own}, {spread}, {count}, {whole}, {size})"
                stage.body += self._across(stage, spread, about, "operator.add", squares_at)
            else:
                stage.body += self._across(stage, own, own, COMBINE[r.kind], self.places[id(r)])

    def _across(self, stage: Stage, name: str, value: str, combine: str, place: int) -> list[str]:
        stage.slots += 1
        return [
            f"{name} = across({value}, {combine}, sRow, {stage.slots - 1}, tidx)",
            "if tidx == 0:",
            f"    gParts[{place}, row, part] = {name}",
        ]


def _loop(name: str, text: PassText, start: list[str], backwards: bool) -> list[str]:
    tile = "(WHOLE - 1 - tile)" if backwards else "tile"
    kept = f"{', '.join(text.accumulators)} = " if text.accumulators else ""
    rest = ", ".join(("THREADS_PER_ROW", *text.operands, *text.accumulators))
    return [
        *start,
        "for tile in cutlass.range(part, WHOLE, BLOCKS):",
        f"    {kept}{name}(row, {tile} * THREADS_PER_ROW * UNROLL + tidx, vector, UNROLL, {rest})",
        "rest = WHOLE * THREADS_PER_ROW * UNROLL + part * THREADS_PER_ROW + tidx",
        "for chunk in cutlass.range(rest, CHUNKS, BLOCKS * THREADS_PER_ROW):",
        f"    {kept}{name}(row, chunk, vector, 1, {rest})",
    ]


def emit(program: Program, name: str, *, fast: bool) -> tuple[KernelText, str]:
    """The text, and how many values its workspace has room for."""
    emitter = FewRowsEmitter(program, fast)
    stages = emitter.stages()
    functions = [line for stage in stages for line in stage.functions]
    names = [f"{name}_part_{k}" for k in range(1, len(stages))] + [f"{name}_result"]
    lines = [
        "CHUNKS = COLUMNS // vector  # accesses of a row",
        "WHOLE = CHUNKS // (THREADS_PER_ROW * UNROLL)  # tiles in which every thread has UNROLL accesses",
        "WARPS_PER_ROW = THREADS_PER_ROW // 32",
        "",
        *LOAD,
        *helpers(functions),
        *(STORE if any(a.per_column for a in emitter.tensors.stores) else ()),
        *(ONLINE if any(g.online for g in emitter.groups) else ()),
        *(MOMENTS if any(g.moments for g in emitter.groups) else ()),
        *ACROSS,
        *functions,
        *(line for stage, kernel in zip(stages, names, strict=True) for line in (*_kernel(stage, kernel), "")),
        *_host(program, emitter, stages, names, name),
    ]
    rows = count_of_rows(f"{emitter.tensors.outputs[0]}.numel()", program, emitter.tensors)
    return KernelText(tuple(lines), emitter.tensors), f"{emitter.slots} * BLOCKS * ({rows})"


def _operands(stage: Stage) -> list[str]:
    return [*(a.gmem for a in (*stage.loads, *stage.stores)), "gParts"]


def _kernel(stage: Stage, name: str) -> list[str]:
    arguments = ", ".join(f"{g}: cute.Tensor" for g in _operands(stage))
    shared = [
        "    smem = cutlass.memory.SmemAllocator()",
        f"    sRow = smem.allocate_tensor(cutlass.Float32, cute.make_layout(({stage.slots}, 1, WARPS_PER_ROW)), 4)",
    ]
    return [
        "@cute.kernel",
        f"def {name}({arguments}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    row, part, _ = cute.arch.block_idx()",
        *(["    part = BLOCKS - 1 - part  # what was read last is still in the L2 cache"] * stage.backwards),
        *(shared if stage.slots else []),
        *(f"    {line}" for line in stage.body),
    ]


def _host(program: Program, emitter: FewRowsEmitter, stages: list[Stage], names: list[str], name: str) -> list[str]:
    tensors: Tensors = emitter.tensors
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(tensors))
    size = count_of_rows(f"cute.size({tensors.stores[0].param})", program, tensors)
    layout = f"cute.make_layout(({emitter.slots}, rows, BLOCKS), stride=(rows * BLOCKS, BLOCKS, 1))"
    launches = [
        line
        for stage, kernel in zip(stages, names, strict=True)
        for line in (
            f"    {kernel}({', '.join(_operands(stage))}).launch(",
            "        grid=[rows, BLOCKS, 1], block=[THREADS_PER_ROW, 1, 1], stream=stream",
            "    )",
        )
    ]
    return [
        "@cute.jit",
        f"def {name}({arguments}, mParts: cute.Tensor, stream: CUstream):",
        f"    rows = {size}",
        *(f"    {a.gmem} = {row_layout(program, a)}" for a in tensors.views),
        f"    gParts = cute.make_tensor(mParts.iterator, {layout})",
        *launches,
        "",
        f"return {name}",
    ]
