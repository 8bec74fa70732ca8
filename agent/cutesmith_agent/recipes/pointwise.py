"""The pointwise family: any DAG of pointwise ops, broadcasts, slices and cats in one pass over memory.

The index space is flat; a broadcast operand is a nested layout with strides of zero, so that every operand is read at
the same flat index. Whole tiles take 16-byte accesses, all loads first; the last tile goes element by
element.
"""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Access, Tensors, pointer, tensors_of
from .ir import Expr, Pool, arguments, walk
from .layout import coalesce, layout_text, vector_width, widest_vector
from .lowering import Program
from .pool_text import is_wide, pool_functions
from .text import Writer, helpers, loads_of

WINDOWED = ((256, 1), (256, 2), (128, 1), (512, 1))  # threads, steps where results are of windows
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
    windowed = _windowed(roots)
    for access in tensors.views:
        if id(access.load) not in windowed:
            vector = vector_width(access.columns, access.offset, (), vector, closed=False)
    if windowed:
        return tuple(PointwiseSchedule(t, v, k) for v in dict.fromkeys((1, vector)) for t, k in WINDOWED)
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
    operands = operands_of(roots, tensors)
    computing = maths(roots, operands, fast=fast)
    windows = [line for o in operands if o.pool for line in pool_functions(program, o.pool, o.read)]
    host = host_lines(program, tensors, roots, name, _GRID)
    return KernelText((*computing, "", *windows, *_kernel(tensors, operands, name), "", *host), tensors)


@dataclass(frozen=True)
class Operand:
    """What a result element is computed from: an element of a tensor, or a window of it."""

    local: str
    access: Access
    read: str  # the function that reads it
    pool: Pool | None = None
    weight: Access | None = None  # of a window's elements

    @property
    def expr(self) -> Expr:
        found = self.pool or self.access.load
        assert found is not None
        return found

    @property
    def text(self) -> str:
        if self.access.per_column or self.pool:
            weight = f"{self.weight.gmem}, " if self.weight else ""
            return f"{self.read}({self.access.gmem}, {weight}chunk, width, steps)"
        return f"{self.access.gmem}[0].to(cutlass.Float32)"


def pools_of(roots: tuple[Expr, ...]) -> tuple[Pool, ...]:
    return tuple(e for e in walk(roots) if isinstance(e, Pool))


def _roots(program: Program) -> tuple[Expr, ...]:
    return tuple(s.expr for s in program.stores)


def _windowed(roots: tuple[Expr, ...]) -> set[int]:
    """The loads that are read by windows, and the windows' weights."""
    return {id(load) for pool in pools_of(roots) for load in (pool.load, pool.weight) if load is not None}


def operands_of(roots: tuple[Expr, ...], tensors: Tensors) -> tuple[Operand, ...]:
    read = {id(a) for e in walk(roots) if not isinstance(e, Pool) for a in arguments(e)} | {id(r) for r in roots}
    loads = [Operand(a.local, a, "load") for a in tensors.loads if id(a.load) in read]
    places = {id(a.load): a for a in tensors.loads}
    pools = pools_of(roots)
    names = ["pooled" if len(pools) == 1 else f"pooled_{k}" for k in range(len(pools))]
    windows = [
        Operand(n, places[id(p.load)], f"pool{n[6:]}", p, places.get(id(p.weight)))
        for n, p in zip(names, pools, strict=True)
    ]
    return (*loads, *windows)


def maths(roots: tuple[Expr, ...], operands: tuple[Operand, ...], *, fast: bool) -> list[str]:
    writer = Writer(fast)
    for operand in operands:
        writer.names[id(operand.expr)] = operand.local
        writer.taken.add(operand.local)
    writer.count(roots)
    results = [writer.write(r) for r in roots]
    parameters = ", ".join(o.local for o in operands)
    staged = ["@cute.jit"] if any(" if " in line for line in (*writer.lines, *results)) else []
    return [
        *helpers([*writer.lines, *results]),
        *staged,
        f"def compute({parameters}):",
        '    """One result element per operand element, in fp32."""',
        *(f"    {line}" for line in writer.lines),
        f"    return {', '.join(results)}",
    ]


_LOAD = (
    "def load(g, chunk, width, steps):",
    '    """This thread\'s elements of `g` in fp32: `steps` accesses of `width`, a block apart."""',
    "    tiles = cute.zipped_divide(g, (width,))",
    "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
    "    for step in range(steps):",
    "        cute.autovec_copy(tiles[None, chunk + step * THREADS], fragment[None, step])",
    "    return fragment.load().to(cutlass.Float32)",
    "",
)


def _kernel(tensors: Tensors, read: tuple[Operand, ...], name: str) -> list[str]:
    operands = ", ".join(o.text for o in read)
    results = ", ".join(a.local for a in tensors.stores)
    first = tensors.stores[0].gmem
    return [
        *(_LOAD if any(o.read == "load" for o in read) else ()),
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


_GRID = "cute.ceil_div(n, THREADS * STEPS * vector)"


def host_lines(program: Program, tensors: Tensors, roots: tuple[Expr, ...], name: str, blocks: str) -> list[str]:
    """The host function; `blocks`: how many are launched, of THREADS threads."""
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(tensors))
    first = tensors.stores[0]
    pieces = sum(1 for s in tensors.stores if s.param == first.param)
    size = f"cute.size({first.param})" + (f" // {pieces}" if pieces > 1 else "")
    windowed = _windowed(roots)
    places = {a.gmem: _flat(program, a) if id(a.load) in windowed else _layout(program, a) for a in tensors.views}
    layouts = {text: f"layout_{k}" for k, text in enumerate(dict.fromkeys(places.values()))}
    views = [f"    {a.gmem} = cute.make_tensor({pointer(a)}, {layouts[places[a.gmem]]})" for a in tensors.views]
    return [
        "@cute.jit",
        f"def {name}({arguments}, stream: CUstream):",
        f"    n = {size}",
        *(f"    {name} = {text}" for text, name in layouts.items()),
        *views,
        f"    grid = [{blocks}, 1, 1]",
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


def _flat(program: Program, access: Access) -> str:
    """All of the tensor, in order; of one that 32 bits cannot count, where it begins."""
    if any(pool.load is access.load and is_wide(program, pool) for pool in pools_of(_roots(program))):
        return "cute.make_layout(1)"
    return f"cute.make_layout(cute.size({access.param}))"


def parameters(tensors: Tensors) -> tuple[str, ...]:
    seen = {a.load.name: a.param for a in tensors.loads if a.load is not None}
    outs = {a.store.output: a.param for a in tensors.stores if a.store is not None}
    return (*(seen[i.name] for i in tensors.inputs), *(outs[k] for k in sorted(outs)))
