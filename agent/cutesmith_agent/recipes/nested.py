"""A result of all rows, a loss: each row gives its values by a row kernel, one block reduces those.

Two launches on the caller's stream and a workspace of a value or a few per row; the order of additions is fixed.
"""

from __future__ import annotations

from dataclasses import replace

from cutesmith_evaluator.types import Node, Ref, TensorSpec

from .accesses import Tensors, tensors_of
from .contract import Unsupported
from .ir import Expr, Load, Reduce, Total, arguments, walk
from .lowering import Program, Store
from .passes import COMBINE, NEUTRAL, combined
from .pointwise import KernelText, parameters
from .space import contiguous
from .text import Writer, helpers, loads_of

THREADS = ("TOTAL_THREADS", 1024, "threads of the block that reduces the rows' values")
IN_FLIGHT = 8  # rows' values that a thread of that block reads ahead
NOUN = "of_rows"


def totals_of(program: Program) -> tuple[Total, ...]:
    return tuple(e for e in walk(tuple(s.expr for s in program.stores)) if isinstance(e, Total))


def row_program(program: Program) -> Program:
    """What the row kernel computes: each value that is reduced over the rows, as an output of its own."""
    values = _row_values(program)
    if any(isinstance(e, Total) for value in values for e in walk((value,))):
        raise Unsupported("no recipe covers a row that needs a result of all rows")
    spec = TensorSpec((program.rows,), "float32", (1,))
    nodes = tuple(Node(f"row_value_{k}", "cutesmith.row_value", (), {}, (spec,)) for k in range(len(values)))
    outputs = tuple(Ref(node.name, 0) for node in nodes)
    strides = (
        *contiguous(program.sizes[: program.row_factors]),
        *(0 for _ in program.sizes[program.row_factors :]),
    )
    stores = tuple(Store(k, value, strides, 0, False) for k, value in enumerate(values))
    graph = replace(program.graph, nodes=(*program.graph.nodes, *nodes), outputs=outputs, returns_tuple=True)
    return replace(program, graph=graph, stores=stores)


def _row_values(program: Program) -> tuple[Expr, ...]:
    return tuple({id(t.arg): t.arg for t in totals_of(program)}.values())


def scratch(program: Program) -> str:
    return str(len(_row_values(program)) * program.rows)


def emit(program: Program, rows: KernelText, name: str) -> KernelText:
    """`rows`: the row kernel's text, for `row_program(program)`, under the name `<name>_rows`."""
    tensors = tensors_of(program, loads_of(tuple(s.expr for s in program.stores)))
    body, results = _total_body(program, tensors)
    lines = [
        *(line for line in rows.lines if line != f"return {name}_rows"),
        *helpers(results),
        *_ACROSS,
        "@cute.kernel",
        f"def {name}_total(gValues: cute.Tensor, {', '.join(f'{s.gmem}: cute.Tensor' for s in tensors.stores)}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    rows = cute.size(gValues, mode=[1])",
        "    smem = cutlass.memory.SmemAllocator()",
        f"    layout = cute.make_layout(({len(totals_of(program))}, TOTAL_THREADS // 32))",
        "    sTotals = smem.allocate_tensor(cutlass.Float32, layout, 4)",
        *(f"    {line}" for line in body),
        "    if tidx == 0:",
        *(f"        {line}" for line in results),
        "",
        *_host(program, rows.tensors, tensors, name),
    ]
    return KernelText(tuple(lines), tensors)


def _total_body(program: Program, tensors: Tensors) -> tuple[list[str], list[str]]:
    """The reductions over the rows, and what one thread makes of them."""
    totals = totals_of(program)
    places = {id(value): k for k, value in enumerate(_row_values(program))}
    writer = Writer(fast=False)
    writer.count(tuple(s.expr for s in program.stores))
    body: list[str] = []
    for slot, total in enumerate(totals):
        name = writer.name(total, f"{total.kind}_{NOUN}")
        value = f"gValues[{places[id(total.arg)]}, row]"
        body += [
            f"{name} = cutlass.Float32({NEUTRAL[total.kind]})",
            f"for row in cutlass.range(tidx, rows, TOTAL_THREADS, unroll={IN_FLIGHT}):",
            f"    {name} = {combined(total.kind, name, value)}",
            f"{name} = across_block({name}, {COMBINE[total.kind]}, sTotals, {slot}, tidx)",
        ]
    for access in tensors.stores:
        assert access.store is not None
        _check(access.store.expr)
        value = writer.write(access.store.expr)
        writer.lines.append(f"{access.gmem}[0] = ({value}).to({access.gmem}.element_type)")
    return body, writer.lines


def _check(root: Expr) -> None:
    """The result needs nothing but totals and numbers."""
    stack = [root]
    while stack:
        e = stack.pop()
        if isinstance(e, Load | Reduce):
            raise Unsupported("no recipe covers a single result that needs more than what all rows give")
        stack += () if isinstance(e, Total) else arguments(e)


def _host(program: Program, row_tensors: Tensors, tensors: Tensors, name: str) -> list[str]:
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(tensors))
    count = len(_row_values(program))
    inputs = parameters(row_tensors)[: len(row_tensors.inputs)]
    values = ", ".join(f"gValues[{k}, None]" for k in range(count))
    layout = f"cute.make_layout(({count}, {program.rows}), stride=({program.rows}, 1))"
    stores = ", ".join(s.gmem for s in tensors.stores)
    return [
        "@cute.jit",
        f"def {name}({arguments}, mValues: cute.Tensor, stream: CUstream):",
        f"    gValues = cute.make_tensor(mValues.iterator, {layout})",
        *(f"    {s.gmem} = cute.make_tensor({s.param}.iterator, cute.make_layout(1))" for s in tensors.stores),
        f"    {name}_rows({', '.join((*inputs, values))}, stream)",
        f"    {name}_total(gValues, {stores}).launch(",
        "        grid=[1, 1, 1], block=[TOTAL_THREADS, 1, 1], stream=stream",
        "    )",
        "",
        f"return {name}",
    ]


_ACROSS = (
    "@cute.jit",
    "def across_block(value, combine: cutlass.Constexpr, sTotals: cute.Tensor, slot: cutlass.Constexpr, tidx):",
    '    """One value per thread to one per block: shuffles, then shared memory; one fixed order."""',
    "    value = cute.arch.warp_reduction(value, combine)",
    "    if tidx % 32 == 0:",
    "        sTotals[slot, tidx // 32] = value",
    "    cute.arch.sync_threads()",
    "    value = sTotals[slot, tidx % (TOTAL_THREADS // 32)]",
    "    return cute.arch.warp_reduction(value, combine, threads_in_group=TOTAL_THREADS // 32)",
    "",
)
