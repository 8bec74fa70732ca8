"""Reductions over a middle or the first dimension: rows that lie side by side in memory.

A thread takes a few neighbouring rows and goes down their columns, so that a warp reads whole lines; threads that share
rows take turns, and tell each other their parts through shared memory. Where a thread's part of the columns fits in
registers it is read once; else once per group of reductions, and once more for results of every column.
"""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Access
from .contract import Unsupported
from .ir import Expr, Load, Reduce, walk
from .long_rows import flush
from .lowering import Program
from .middle_helpers import NEUTRAL_PAIR, middle_helpers
from .middle_schedules import MiddleSchedule, touched
from .passes import NEUTRAL, Group, PassText, below, groups, name_row_values, read_names
from .pointwise import KernelText
from .rows import host
from .text import NOUNS, Writer, helpers

ARG = ("argmax", "argmin")
_GRID = "grid = [cute.ceil_div(rows, LANES * vector), 1, 1]"
_LAUNCH = "grid=grid, block=[LANES * PARTS, 1, 1], stream=stream"
MOST_PLACES = 1 << 24  # a place in a row travels as a float32


@dataclass
class MiddleEmitter:
    """Writes the body of a kernel for one schedule."""

    program: Program
    schedule: MiddleSchedule
    fast: bool

    def __post_init__(self) -> None:
        self.roots = tuple(s.expr for s in self.program.stores)
        self.tensors = touched(self.program)
        self.scalars = Writer(self.fast, row_vectors=True)  # values of rows, a vector of each thread's
        self.scalars.count(self.roots)
        self.functions: list[str] = []
        self.body: list[str] = []
        self.slots = 0

    def emit(self) -> None:
        if not self.schedule.unroll:
            self._keep_columns()
        for number, group in enumerate(groups(self.roots, indices=True), 1):
            text = self._pass(f"pass_{number}", group, ())
            self.body += flush(self.scalars) + self._calls(f"pass_{number}", text, _initial(group, text))
            self._combine(group, text)
        columns = tuple(a for a in self.tensors.stores if a.per_column)
        if columns:
            text = self._pass("write", Group((), {}), columns)
            self.body += flush(self.scalars) + self._calls("write", text, [])
        for access in self.tensors.stores:
            if not access.per_column and access.store is not None:
                self._name_row_loads((access.store.expr,))
                value = self.scalars.write(access.store.expr)
                self.body += [*flush(self.scalars), "if live and part == 0:"]
                self.body.append(f"    store({value}, {access.gmem}, tile, 0, vector, 1, live)")

    def _keep_columns(self) -> None:
        for a in self.tensors.loads:
            if a.per_column and a.load is not None:
                self.body.append(f"{self.scalars.name(a.load, a.local)} = load({a.gmem}, tile, part, vector, STEPS)")

    def _calls(self, name: str, text: PassText, initial: list[str]) -> list[str]:
        kept = f"{', '.join(text.accumulators)} = " if text.accumulators else ""
        operands = "".join(f", {o}" for o in (*text.operands, *text.accumulators))
        if not self.schedule.unroll:
            return [*initial, f"{kept}{name}(tile, part, vector, STEPS{operands})"]
        return [
            *initial,
            "for k in cutlass.range(WHOLE):",
            f"    {kept}{name}(tile, k * PARTS * UNROLL + part, vector, UNROLL{operands})",
            "for column in cutlass.range(WHOLE * PARTS * UNROLL + part, COLUMNS, PARTS):",
            f"    {kept}{name}(tile, column, vector, 1{operands})",
        ]

    def _pass(self, name: str, group: Group, stores: tuple[Access, ...]) -> PassText:
        """A function that handles `steps` columns of a thread's rows: as `passes.pass_function`, in vectors of rows."""
        text = PassText()
        roots = (*(r.arg for r in group.reductions), *(s.store.expr for s in stores if s.store is not None))
        self._name_row_loads(roots)
        name_row_values(roots, self.scalars)
        names = dict(self.scalars.names)
        writer = Writer(self.fast, names=names, taken=set(self.scalars.taken), row_vectors=True)
        writer.count(roots)
        self._load_columns(roots, writer, text)
        for r in group.reductions:
            _accumulate(r, group, writer, text)
        for access in stores:
            assert access.store is not None
            text.operands.append(access.gmem)
            value = writer.write(access.store.expr)
            writer.lines.append(f"store({value}, {access.gmem}, tile, column, width, steps, live)")
        text.operands += sorted(read_names(roots, self.scalars) - set(text.operands)) + ["live"] * bool(stores)
        header = ", ".join(("tile", "column", "width", "steps", *text.operands, *text.accumulators))
        returns = [f"return {', '.join(text.accumulators)}"] if text.accumulators else []
        self.functions += [f"def {name}({header}):", *(f"    {line}" for line in (*writer.lines, *returns)), ""]
        return text

    def _name_row_loads(self, roots: tuple[Expr, ...]) -> None:
        below = {id(e) for e in walk(roots)}
        for a in self.tensors.loads:
            if not a.per_column and id(a.load) in below and id(a.load) not in self.scalars.names:
                assert a.load is not None
                name = self.scalars.name(a.load, a.local)
                self.scalars.lines.append(f"{name} = load({a.gmem}, tile, 0, vector, 1)")

    def _load_columns(self, roots: tuple[Expr, ...], writer: Writer, text: PassText) -> None:
        needed = {id(e) for e in below(roots, writer) if isinstance(e, Load)}
        for a in self.tensors.loads:
            if a.per_column and id(a.load) in needed and a.load is not None:
                text.operands.append(a.gmem)
                writer.lines.append(f"{writer.name(a.load, a.local)} = load({a.gmem}, tile, column, width, steps)")

    def _combine(self, group: Group, text: PassText) -> None:
        """From a value of each thread that shares rows to one value of the row."""
        names = iter(text.accumulators)
        for r in group.reductions:
            own = next(names)
            self.scalars.name(r, own)
            total = group.online.get(id(r))
            sums = next(names) if total is not None or r.kind in ARG else ""
            if total is not None:
                self.scalars.name(total, sums)
            if r.kind in ARG:
                self.scalars.name(r, sums)
            if self.schedule.parts == 1:
                continue
            if total is not None:
                top = self.scalars.fresh("top")
                self.body += [
                    f"{top} = across({own}, larger, sParts, {self.slots}, lane, part)",
                    f"{sums} = {sums} * cute.math.exp({own} - finite({top}))",
                    f"{sums} = across({sums}, operator.add, sParts, {self.slots + 1}, lane, part)",
                    f"{own} = {top}",
                ]
                self.slots += 2
            elif r.kind in ARG:
                self.body.append(f"{own}, {sums} = across_pairs({own}, {sums}, sParts, {self.slots}, lane, part)")
                self.slots += 2
            else:
                self.body.append(f"{own} = across({own}, {_COMBINE[r.kind]}, sParts, {self.slots}, lane, part)")
                self.slots += 1


_COMBINE = {"sum": "operator.add", "prod": "operator.mul", "max": "larger", "min": "smaller"}
_OP = {"sum": "ADD", "prod": "MUL", "max": "MAX", "min": "MIN"}


def _initial(group: Group, text: PassText) -> list[str]:
    values: list[str] = []
    for r in group.reductions:
        values += NEUTRAL_PAIR[r.kind] if r.kind in ARG else [f"{NEUTRAL[r.kind]}, cutlass.Float32"]
        if id(r) in group.online:
            values.append("0.0, cutlass.Float32")
    return [f"{name} = cute.full((vector, 1), {v})" for name, v in zip(text.accumulators, values, strict=True)]


def _accumulate(r: Reduce, group: Group, writer: Writer, text: PassText) -> None:
    if not r.arg.per_column:
        raise Unsupported(f"no recipe covers a {r.kind} of a value that is the same in every column")
    values = writer.write(r.arg)
    name = writer.name(r, NOUNS[r.kind])
    text.accumulators.append(name)
    total = group.online.get(id(r))
    if total is not None:
        sums = writer.name(total, NOUNS["sum"])
        text.accumulators.append(sums)
        writer.lines.append(f"{name}, {sums} = online({values}, {name}, {sums})")
    elif r.kind in ARG:
        best = writer.fresh(f"best_{name}")
        text.accumulators[-1:] = [best, name]
        writer.lines.append(f"{best}, {name} = nearest({values}, column, {best}, {name})")
    else:
        folded = f"fold({values}, cute.ReductionOp.{_OP[r.kind]}, {NEUTRAL[r.kind]})"
        writer.lines.append(f"{name} = {_COMBINED[r.kind].format(name, folded)}")


_COMBINED = {"sum": "{} + {}", "prod": "{} * {}", "max": "larger({}, {})", "min": "smaller({}, {})"}


def _check(program: Program) -> None:
    kinds = {e.kind for e in walk(tuple(s.expr for s in program.stores)) if isinstance(e, Reduce)}
    if kinds & set(ARG) and program.columns > MOST_PLACES:
        raise Unsupported(f"no recipe covers an index among {program.columns} elements: more than 2**24")


def emit(program: Program, schedule: MiddleSchedule, name: str, *, fast: bool) -> KernelText:
    _check(program)
    emitter = MiddleEmitter(program, schedule, fast)
    emitter.emit()
    sizes = (
        ["WHOLE = COLUMNS // (PARTS * UNROLL)  # rounds in which every thread has UNROLL accesses"]
        if schedule.unroll
        else ["STEPS = COLUMNS // PARTS  # columns of a thread"]
    )
    text = [*emitter.functions, *emitter.body]
    lines = [
        *sizes,
        "",
        *helpers(text),
        *middle_helpers(text),
        *emitter.functions,
        *_kernel(emitter, name),
        "",
        *host(program, emitter.tensors, name, grid=_GRID, launch=_LAUNCH),
    ]
    return KernelText(tuple(lines), emitter.tensors)


def _kernel(emitter: MiddleEmitter, name: str) -> list[str]:
    first = emitter.tensors.stores[0].gmem
    return [
        "@cute.kernel",
        f"def {name}_kernel({emitter.tensors.signature}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        "    lane, part = tidx % LANES, tidx // LANES",
        f"    tiles = cute.size({first}, mode=[0]) // vector",
        "    at = bidx * LANES + lane",
        "    live = at < tiles",
        "    tile = cutlass.min(at, tiles - 1)  # threads past the last row redo it and store nothing",
        *_shared(emitter),
        *(f"    {line}" for line in emitter.body),
    ]


def _shared(emitter: MiddleEmitter) -> list[str]:
    if emitter.schedule.parts == 1:
        return []
    return [
        "    smem = cutlass.memory.SmemAllocator()",
        f"    layout = cute.make_ordered_layout(({emitter.slots}, PARTS, LANES * vector), order=(2, 1, 0))",
        "    sParts = smem.allocate_tensor(cutlass.Float32, layout, 16)",
    ]
