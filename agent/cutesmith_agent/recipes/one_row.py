"""One very long row (a loss over a whole batch): many blocks reduce parts of it, one block reduces their results.

Two launches on the caller's stream and a small workspace; the order of additions is fixed: results repeat bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Tensors, tensors_of
from .ir import Reduce, walk
from .long_rows import flush, initial
from .lowering import Program
from .passes import ACROSS, COMBINE, LOAD, NEUTRAL, Group, PassText, combined, pass_function
from .pointwise import KernelText, parameters
from .rows import row_layout, row_vector
from .text import Writer, helpers, loads_of

MIN_COLUMNS = 1 << 15  # below this one block is as quick
IN_FLIGHT = 8  # parts that a thread of the last block reads ahead


@dataclass(frozen=True)
class OneRowSchedule:
    vector: int
    threads: int
    blocks: int
    unroll: int

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("VECTOR", self.vector, "elements per access, 16 bytes where the tensors are aligned"),
            ("THREADS_PER_ROW", self.threads, "threads per block"),
            ("BLOCKS", self.blocks, "blocks that share the row"),
            ("UNROLL", self.unroll, "accesses in flight per thread and tensor"),
        )


def applies(program: Program) -> bool:
    """One row, results of the row alone, and no reduction that waits for another."""
    roots = tuple(s.expr for s in program.stores)
    reductions = [e for e in walk(roots) if isinstance(e, Reduce)]
    simple = all(r.arg.level == 0 and r.kind in NEUTRAL for r in reductions)
    return (
        program.rows == 1
        and program.columns >= MIN_COLUMNS
        and simple
        and not any(s.per_column for s in program.stores)
    )


def schedules(program: Program) -> tuple[OneRowSchedule, ...]:
    """Best guess first; measured on H200: many more blocks than run at a time, so that the last of them do not leave
    most of the device idle. No more than there are tiles for."""
    vector = row_vector(program)
    shapes = ((256, 8448, 2), (256, 4224, 2), (512, 528, 2), (256, 8448, 1), (256, 1056, 2), (256, 528, 4))
    found = []
    for threads, blocks, unroll in shapes:
        tiles = max(program.columns // (threads * vector * unroll), 1)
        found.append(OneRowSchedule(vector, threads, min(blocks, tiles), unroll))
    return tuple(dict.fromkeys(found))


def emit(program: Program, name: str, *, fast: bool) -> tuple[KernelText, int]:
    """The text, and how many workspace values a block writes."""
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    reductions = tuple(e for e in walk(roots) if isinstance(e, Reduce))
    scalars = Writer(fast)
    scalars.count(roots)
    text = pass_function("accumulate", Group(reductions, {}), (), tensors, scalars)
    first = flush(scalars)
    second = _finish(reductions, text, tensors, scalars)
    lines = [
        "CHUNKS = COLUMNS // vector  # accesses of the row",
        "WHOLE = CHUNKS // (THREADS_PER_ROW * UNROLL)  # tiles in which every thread has UNROLL accesses",
        "WARPS_PER_ROW = THREADS_PER_ROW // 32",
        "",
        *LOAD,
        *ACROSS,
        *helpers(text.lines),
        *text.lines,
        *_partial_kernel(name, reductions, text, tensors, first),
        "",
        *_final_kernel(name, reductions, tensors, second),
        "",
        *_host(program, tensors, name, len(reductions)),
    ]
    return KernelText(tuple(lines), tensors), len(reductions)


def _shared(slots: int) -> list[str]:
    return [
        "    smem = cutlass.memory.SmemAllocator()",
        f"    sRow = smem.allocate_tensor(cutlass.Float32, cute.make_layout(({slots}, 1, WARPS_PER_ROW)), 4)",
    ]


def _partial_kernel(
    name: str, reductions: tuple[Reduce, ...], text: PassText, tensors: Tensors, scalars: list[str]
) -> list[str]:
    loads = "".join(f"{a.gmem}: cute.Tensor, " for a in tensors.loads)
    kept = ", ".join(text.accumulators)
    rest = ", ".join(("THREADS_PER_ROW", *text.operands, *text.accumulators))
    lines = [
        "@cute.kernel",
        f"def {name}_parts({loads}gParts: cute.Tensor):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    block, _, _ = cute.arch.block_idx()",
        "    row = 0",
        *_shared(len(reductions)),
        *(f"    {line}" for line in scalars),
        *(f"    {line}" for line in initial(Group(reductions, {}), text)),
        "    for tile in cutlass.range(block, WHOLE, BLOCKS):",
        "        chunk = tile * THREADS_PER_ROW * UNROLL + tidx",
        f"        {kept} = accumulate(row, chunk, vector, UNROLL, {rest})",
        "    rest = WHOLE * THREADS_PER_ROW * UNROLL + block * THREADS_PER_ROW + tidx",
        "    for chunk in cutlass.range(rest, CHUNKS, BLOCKS * THREADS_PER_ROW):",
        f"        {kept} = accumulate(row, chunk, vector, 1, {rest})",
    ]
    for slot, (r, own) in enumerate(zip(reductions, text.accumulators, strict=True)):
        lines += [
            f"    {own} = across({own}, {COMBINE[r.kind]}, sRow, {slot}, tidx)",
            "    if tidx == 0:",
            f"        gParts[{slot}, block] = {own}",
        ]
    return lines


def _finish(reductions: tuple[Reduce, ...], text: PassText, tensors: Tensors, scalars: Writer) -> list[str]:
    """Statements of the last block: the parts' reduction, then whatever is computed from it."""
    lines: list[str] = []
    for slot, (r, own) in enumerate(zip(reductions, text.accumulators, strict=True)):
        name = scalars.name(r, own)
        part = f"gParts[{slot}, part]"
        lines += [
            f"{name} = cutlass.Float32({NEUTRAL[r.kind]})",
            f"for part in cutlass.range(tidx, BLOCKS, THREADS_PER_ROW, unroll={IN_FLIGHT}):",
            f"    {name} = {combined(r.kind, name, part)}",
            f"{name} = across({name}, {COMBINE[r.kind]}, sRow, {slot}, tidx)",
        ]
    for access in tensors.loads:
        if not access.per_column and access.load is not None and id(access.load) not in scalars.names:
            lines.append(f"{scalars.name(access.load, access.local)} = {access.gmem}[row, 0].to(cutlass.Float32)")
    for access in tensors.stores:
        assert access.store is not None
        value = scalars.write(access.store.expr)
        lines += [
            *flush(scalars),
            "if tidx == 0:",
            f"    {access.gmem}[row, 0] = ({value}).to({access.gmem}.element_type)",
        ]
    return lines


def _final_operands(tensors: Tensors) -> list[str]:
    return [a.gmem for a in tensors.loads if not a.per_column] + ["gParts"] + [a.gmem for a in tensors.stores]


def _final_kernel(name: str, reductions: tuple[Reduce, ...], tensors: Tensors, body: list[str]) -> list[str]:
    arguments = ", ".join(f"{g}: cute.Tensor" for g in _final_operands(tensors))
    return [
        "@cute.kernel",
        f"def {name}_total({arguments}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    row = 0",
        *_shared(len(reductions)),
        *(f"    {line}" for line in body),
    ]


def _host(program: Program, tensors: Tensors, name: str, slots: int) -> list[str]:
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(tensors))
    parts = ", ".join((*(a.gmem for a in tensors.loads), "gParts"))
    return [
        "@cute.jit",
        f"def {name}({arguments}, mParts: cute.Tensor, stream: CUstream):",
        "    rows = 1",
        *(f"    {a.gmem} = {row_layout(program, a)}" for a in tensors.views),
        f"    gParts = cute.make_tensor(mParts.iterator, cute.make_layout(({slots}, BLOCKS), stride=(BLOCKS, 1)))",
        f"    {name}_parts({parts}).launch(grid=[BLOCKS, 1, 1], block=[THREADS_PER_ROW, 1, 1], stream=stream)",
        f"    {name}_total({', '.join(_final_operands(tensors))}).launch(",
        "        grid=[1, 1, 1], block=[THREADS_PER_ROW, 1, 1], stream=stream",
        "    )",
        "",
        f"return {name}",
    ]
