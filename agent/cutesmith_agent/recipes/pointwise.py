"""The pointwise family: any DAG of pointwise ops, broadcasts, slices and cats in one pass over memory.

The index space is flat; a broadcast operand is a nested layout with strides of zero, so that every operand is read at
the same flat index. Whole tiles take 16-byte accesses, all loads first; the last tile goes element by
element.
"""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Access, Tensors, pointer, tensors_of
from .ir import Expr
from .layout import coalesce, layout_text, vector_width, widest_vector
from .lowering import Program
from .text import Writer, helpers, loads_of

MANY_OPERANDS = 8  # views of tensors that a thread reads or writes


@dataclass(frozen=True)
class PointwiseSchedule:
    threads: int  # per block
    vector: int  # elements per access
    steps: int  # accesses per thread and operand

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("THREADS", self.threads, "threads per block"),
            ("VECTOR", self.vector, "elements per access, 16 bytes where the tensors are aligned"),
            ("STEPS", self.steps, "accesses per thread and tensor, all loads issued before the first use"),
        )


def schedules(program: Program) -> tuple[PointwiseSchedule, ...]:
    """Best guess first; measured on H200: one access per thread suffices in fp32, two help half precision.

    With many operands a thread has enough accesses in flight: there the size of the block decides."""
    vector = widest_vector(program)
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    for access in tensors.views:
        vector = vector_width(access.columns, access.offset, (), vector, closed=False)
    if len(tensors.views) >= MANY_OPERANDS:
        shapes = (
            ((1024, 1), (128, 1), (64, 1), (512, 1), (256, 1))
            if vector <= 4
            else ((128, 1), (64, 1), (256, 1), (256, 2), (512, 1))
        )
    else:
        shapes = (
            ((256, 1), (256, 2), (512, 1), (512, 2), (128, 4))
            if vector <= 4
            else ((256, 2), (256, 1), (512, 2), (256, 4), (128, 4))
        )
    return tuple(PointwiseSchedule(threads, vector, steps) for threads, steps in shapes)


@dataclass(frozen=True)
class KernelText:
    """The lines inside the program function: the fused maths, the kernel, the host function."""

    lines: tuple[str, ...]
    tensors: Tensors


def emit(program: Program, name: str, *, fast: bool) -> KernelText:
    roots = tuple(s.expr for s in program.stores)
    loads = loads_of(roots)
    tensors = tensors_of(program, loads)
    maths = _maths(roots, tensors, fast=fast)
    return KernelText((*maths, "", *_kernel(tensors, name), "", *_host(program, tensors, name)), tensors)


def _maths(roots: tuple[Expr, ...], tensors: Tensors, *, fast: bool) -> list[str]:
    writer = Writer(fast)
    for access in tensors.loads:
        assert access.load is not None
        writer.names[id(access.load)] = access.local
        writer.taken.add(access.local)
    writer.count(roots)
    results = [writer.write(r) for r in roots]
    parameters = ", ".join(a.local for a in tensors.loads)
    staged = ["@cute.jit"] if any(" if " in line for line in (*writer.lines, *results)) else []
    return [
        *helpers([*writer.lines, *results]),
        *staged,
        f"def compute({parameters}):",
        '    """One result element per operand element, in fp32."""',
        *(f"    {line}" for line in writer.lines),
        f"    return {', '.join(results)}",
    ]


def _kernel(tensors: Tensors, name: str) -> list[str]:
    operands = ", ".join(
        f"load({a.gmem}, chunk, width, steps)" if a.per_column else f"{a.gmem}[0].to(cutlass.Float32)"
        for a in tensors.loads
    )
    results = ", ".join(a.local for a in tensors.stores)
    first = tensors.stores[0].gmem
    return [
        "def load(g, chunk, width, steps):",
        '    """This thread\'s elements of `g` in fp32: `steps` accesses of `width`, a block apart."""',
        "    tiles = cute.zipped_divide(g, (width,))",
        "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
        "    for step in range(steps):",
        "        cute.autovec_copy(tiles[None, chunk + step * THREADS], fragment[None, step])",
        "    return fragment.load().to(cutlass.Float32)",
        "",
        "def store(result, g, chunk, width, steps):",
        "    tiles = cute.zipped_divide(g, (width,))",
        "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
        "    fragment.store(result.to(g.element_type))",
        "    for step in range(steps):",
        "        cute.autovec_copy(fragment[None, step], tiles[None, chunk + step * THREADS])",
        "",
        f"def process({tensors.gmem}, chunk, width, steps):",
        f"    {results} = compute({operands})",
        *(f"    store({a.local}, {a.gmem}, chunk, width, steps)" for a in tensors.stores),
        "",
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        f"    n = cute.size({first})",
        "    tile = THREADS * STEPS * vector",
        "    if n - bidx * tile >= tile:",
        f"        process({tensors.gmem}, bidx * THREADS * STEPS + tidx, vector, STEPS)",
        "    else:",
        "        for i in cutlass.range(bidx * tile + tidx, n, THREADS):",
        f"            process({tensors.gmem}, i, 1, 1)",
    ]


def _host(program: Program, tensors: Tensors, name: str) -> list[str]:
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(tensors))
    first = tensors.stores[0]
    pieces = sum(1 for s in tensors.stores if s.param == first.param)
    size = f"cute.size({first.param})" + (f" // {pieces}" if pieces > 1 else "")
    layouts = {text: f"layout_{k}" for k, text in enumerate(dict.fromkeys(_layout(program, a) for a in tensors.views))}
    views = [f"    {a.gmem} = cute.make_tensor({pointer(a)}, {layouts[_layout(program, a)]})" for a in tensors.views]
    return [
        "@cute.jit",
        f"def {name}({arguments}, stream: CUstream):",
        f"    n = {size}",
        *(f"    {name} = {text}" for text, name in layouts.items()),
        *views,
        "    grid = [cute.ceil_div(n, THREADS * STEPS * vector), 1, 1]",
        f"    {name}_kernel({tensors.gmem}).launch(",
        "        grid=grid, block=[THREADS, 1, 1], stream=stream",
        "    )",
        "",
        f"return {name}",
    ]


def _layout(program: Program, access: Access) -> str:
    if not access.per_column:
        return "cute.make_layout(1)"
    at = access.load or access.store
    assert at is not None
    return layout_text(coalesce(program.sizes, at.strides), "n")


def parameters(tensors: Tensors) -> tuple[str, ...]:
    seen = {a.load.name: a.param for a in tensors.loads if a.load is not None}
    outs = {a.store.output: a.param for a in tensors.stores if a.store is not None}
    return (*(seen[i.name] for i in tensors.inputs), *(outs[k] for k in sorted(outs)))
