"""Rows too long for registers: one reading per group of reductions and one to write, a block per row."""

from __future__ import annotations

from .accesses import Tensors, tensors_of
from .lowering import Program
from .online import MOMENTS, ONLINE
from .passes import (
    ACROSS,
    COMBINE,
    LOAD,
    LOAD_BY_PRIORITY,
    NEUTRAL,
    STORE,
    Group,
    PassText,
    groups,
    name_row_loads,
    pass_function,
    plain_read,
    read_by_priority,
)
from .pointwise import KernelText
from .rows import host
from .text import Writer, helpers, loads_of


def emit(program: Program, name: str, *, fast: bool, by_priority: bool) -> KernelText:
    """`by_priority`: as `read_by_priority`."""
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    scalars = Writer(fast)
    scalars.count(roots)
    functions: list[str] = []
    body: list[str] = []
    passes = groups(roots, columns=program.columns)
    read = read_by_priority if by_priority else plain_read
    slots = 0
    for number, group in enumerate(passes, 1):
        text = pass_function(f"pass_{number}", group, (), tensors, scalars, read)
        functions += text.lines
        body += flush(scalars) + _loop(f"pass_{number}", text, initial(group, text))
        slots = combine(group, text, scalars, slots)
        body += flush(scalars)
    body += _results(tensors, scalars, functions)
    lines = [
        "CHUNKS = COLUMNS // vector  # accesses of a row",
        "WHOLE = CHUNKS // (THREADS_PER_ROW * UNROLL)  # rounds in which every thread has UNROLL accesses",
        "WARPS_PER_ROW = THREADS_PER_ROW // 32",
        "",
        *(LOAD_BY_PRIORITY if by_priority else LOAD),
        *helpers(functions),
        *(STORE if any(a.per_column for a in tensors.stores) else ()),
        *(ONLINE if any(g.online for g in passes) else ()),
        *(MOMENTS if any(g.moments for g in passes) else ()),
        *ACROSS,
        *functions,
        *_kernel(tensors, name, body, slots),
        "",
        *host(program, tensors, name),
    ]
    return KernelText(tuple(lines), tensors)


def flush(scalars: Writer) -> list[str]:
    lines, scalars.lines = scalars.lines, []
    return lines


def initial(group: Group, text: PassText) -> list[str]:
    values = []
    for r in group.reductions:
        values.append(NEUTRAL[r.kind])
        values += ["0.0"] * (id(r) in group.online) + ["0.0"] * 2 * (id(r) in group.moments)
    return [f"{name} = cutlass.Float32({value})" for name, value in zip(text.accumulators, values, strict=True)]


def _loop(name: str, text: PassText, initial: list[str]) -> list[str]:
    kept = f"{', '.join(text.accumulators)} = " if text.accumulators else ""
    operands = ", ".join((*text.operands, *text.accumulators))
    return [
        *initial,
        "for tile in cutlass.range(WHOLE):",
        f"    {kept}{name}(row, tile * THREADS_PER_ROW * UNROLL + lane, vector, UNROLL, THREADS_PER_ROW, {operands})",
        "for chunk in cutlass.range(WHOLE * THREADS_PER_ROW * UNROLL + lane, CHUNKS, THREADS_PER_ROW):",
        f"    {kept}{name}(row, chunk, vector, 1, THREADS_PER_ROW, {operands})",
    ]


def combine(group: Group, text: PassText, scalars: Writer, slot: int, rooms: str = "sRow") -> int:
    """From a value per thread to one per row; the second of a pair is corrected to the row's first.

    `rooms`: the shared memory that `across` needs. Returns the next free slot in it."""
    names = iter(text.accumulators)
    for r in group.reductions:
        own = next(names)
        name = scalars.name(r, own)
        total, squares = group.online.get(id(r)), group.moments.get(id(r))
        if squares is not None:
            spread, count = next(names), next(names)
            whole = scalars.fresh("whole_sum")
            scalars.name(squares, spread)
            scalars.lines += [
                f"{whole} = across({own}, operator.add, {rooms}, {slot}, tidx)",
                f"{spread} = about({own}, {spread}, {count}, {whole}, float(COLUMNS))",
                f"{spread} = across({spread}, operator.add, {rooms}, {slot + 1}, tidx)",
                f"{name} = {whole}",
            ]
            slot += 2
            continue
        if total is None:
            scalars.lines.append(f"{name} = across({own}, {COMBINE[r.kind]}, {rooms}, {slot}, tidx)")
            slot += 1
            continue
        sums = next(names)
        top = scalars.fresh("top")
        scalars.name(total, sums)
        scalars.lines += [
            f"{top} = across({own}, cute.math.max, {rooms}, {slot}, tidx)",
            f"{sums} = across({sums} * cute.math.exp({own} - finite({top})), operator.add, {rooms}, {slot + 1}, tidx)",
            f"{name} = {top}",
        ]
        slot += 2
    return slot


def _results(tensors: Tensors, scalars: Writer, functions: list[str]) -> list[str]:
    """The last reading writes what has a value per column; one thread writes what has one per row."""
    columns = tuple(a for a in tensors.stores if a.per_column)
    lines: list[str] = []
    if columns:
        text = pass_function("write", Group((), {}), columns, tensors, scalars)
        functions += text.lines
        lines += flush(scalars) + _loop("write", text, [])
    for access in tensors.stores:
        if not access.per_column and access.store is not None:
            name_row_loads((access.store.expr,), tensors, scalars)
            value = scalars.write(access.store.expr)
            lines += [
                *flush(scalars),
                "if lane == 0:",
                f"    {access.gmem}[row, 0] = ({value}).to({access.gmem}.element_type)",
            ]
    return lines


def _kernel(tensors: Tensors, name: str, body: list[str], slots: int) -> list[str]:
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    lane, _, _ = cute.arch.thread_idx()",
        "    row, _, _ = cute.arch.block_idx()",
        "    tidx = lane",
        "    smem = cutlass.memory.SmemAllocator()",
        f"    sRow = smem.allocate_tensor(cutlass.Float32, cute.make_layout(({slots}, 1, WARPS_PER_ROW)), 4)",
        *(f"    {line}" for line in body),
    ]
