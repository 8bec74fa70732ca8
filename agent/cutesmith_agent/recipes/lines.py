"""Windows along a line, pooling and depthwise convolution in one dimension: a line is read once, in wide accesses.

A block brings what its windows reach into shared memory. Its threads then take windows from there, either the ones
that they write, or first a run of neighbouring ones, whose shared elements they read once, into registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Tensors, tensors_of
from .line import Line, line_of
from .line_text import line_constants, stage_function, windows_function
from .lowering import Program
from .pointwise import KernelText, Operand, host_lines, maths, operands_of
from .strip_text import Element
from .strips import element_of
from .text import loads_of

LEAST_WIDTH = 256  # results of a line: below, most of a block would idle
SHARED_BYTES = 48 << 10  # of a block, without asking for more


@dataclass(frozen=True)
class LineSchedule:
    threads: int  # of a block
    results: int  # of a thread
    vector: int  # elements of an access
    neighbours: bool  # a thread's windows lie next to each other

    @property
    def name(self) -> str:
        return "RUN" if self.neighbours else "RESULTS"

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        what = "neighbouring windows of a thread: odd, as banks are" if self.neighbours else "windows of a thread"
        return (
            ("THREADS", self.threads, "threads per block"),
            (self.name, self.results, what),
            ("VECTOR", self.vector, "elements per access, 16 bytes where the tensors are aligned"),
        )


def schedules(program: Program) -> tuple[LineSchedule, ...]:
    """Best guess first; windows that share elements gain most from runs of neighbours."""
    line = line_of(program)
    if line is None or (line.width < LEAST_WIDTH and line.pool.element is None):
        return ()
    apart = ((256, 8), (256, 4), (512, 4), (128, 8))
    runs = ((128, 31), (256, 15), (128, 15), (256, 7)) if line.along.dilation > 1 else ((256, 15), (128, 15), (256, 7))
    if line.stride % 2 == 0 or line.stride >= line.along.taps:
        runs = ()
    made = [LineSchedule(t, n, line.vector, False) for t, n in apart]
    made += [LineSchedule(t, n, line.vector, True) for t, n in runs]
    fitting = [each for each in made if _fits(each, line)]
    if not fitting and line.pool.element is not None:  # no other family takes windows of what is computed
        least = LineSchedule(128, 1, line.vector, False)
        return (least,) if _shared(least, line) <= SHARED_BYTES else ()
    return tuple(sorted(fitting, key=lambda each: each.results != 8))[:7]


def _fits(schedule: LineSchedule, line: Line) -> bool:
    return schedule.threads * schedule.results < 2 * line.width and _shared(schedule, line) <= SHARED_BYTES


def _shared(schedule: LineSchedule, line: Line) -> int:
    """Bytes of shared memory, at most."""
    return (schedule.threads * schedule.results * line.stride + line.reach + 2 * line.vector) * 4


def emit(program: Program, schedule: LineSchedule, name: str, *, fast: bool) -> KernelText:
    line = line_of(program)
    assert line is not None
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    operands = operands_of(roots, tensors)
    element = element_of(line.pool, tensors, fast=fast)
    lines = (
        *line_constants(line, schedule.name),
        "",
        *maths(roots, operands, fast=fast),
        "",
        *stage_function(line, element),
        *windows_function(line, schedule.name, neighbours=schedule.neighbours),
        *(_operand_function(schedule.name) if any(_varies(o) for o in operands) else ()),
        *_store(schedule.name),
        *_kernel(tensors, operands, element, schedule.name, name),
        "",
        *host_lines(program, tensors, roots, name, f"cute.size({tensors.stores[0].param}) // WIDTH * TILES"),
    )
    return KernelText(lines, tensors)


def _operand_function(results: str) -> list[str]:
    return [
        "def operand(g, at, x):",
        '    """The elements of `g` that this thread\'s results need, in fp32."""',
        f"    fragment = cute.make_rmem_tensor({results}, cutlass.Float32)",
        f"    for k in range({results}):",
        "        fragment[k] = g[at + cutlass.min(k * THREADS, WIDTH - 1 - x)].to(cutlass.Float32)",
        "    return fragment.load()",
        "",
    ]


def _store(results: str) -> list[str]:
    return [
        "@cute.jit",
        "def store(result, g: cute.Tensor, at, x):",
        f"    fragment = cute.make_rmem_tensor({results}, g.element_type)",
        "    fragment.store(result.to(g.element_type))",
        f"    for k in cutlass.range_constexpr({results}):",
        "        if x + k * THREADS < WIDTH:",
        "            g[at + k * THREADS] = fragment[k]",
        "",
    ]


def _varies(o: Operand) -> bool:
    """Whether an operand has an element for each result of a line."""
    return o.pool is None and o.access.per_column and o.access.load is not None and o.access.load.strides[-1] != 0


def _operand(o: Operand, results: str) -> str:
    if o.pool is not None:
        weight = f"{o.weight.gmem}, " if o.weight is not None else ""
        return f"windows(sLine, {weight}outer, first, tidx)"
    if _varies(o):
        return f"operand({o.access.gmem}, at, first + tidx)"
    if not o.access.per_column:
        return f"{o.access.gmem}[0].to(cutlass.Float32)"
    return f"cute.full({results}, {o.access.gmem}[outer * WIDTH].to(cutlass.Float32), cutlass.Float32)"


def _kernel(
    tensors: Tensors, operands: tuple[Operand, ...], element: Element | None, results: str, name: str
) -> list[str]:
    x = next(o for o in operands if o.pool is not None)
    given = ", ".join(_operand(o, results) for o in operands)
    staged = ", ".join((x.access.gmem, *(element.needed if element else ())))
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        "    outer, first = bidx // TILES, bidx % TILES * TILE",
        "    smem = cutlass.memory.SmemAllocator()",
        "    sLine = smem.allocate_tensor(cutlass.Float32, cute.make_layout(CHUNKS * vector), 16)",
        f"    stage({staged}, sLine, outer, bidx % TILES * STEP + BEGIN, tidx)",
        "    cute.arch.sync_threads()",
        "    at = outer * WIDTH + first + tidx",
        f"    {', '.join(s.local for s in tensors.stores)} = compute({given})",
        *(f"    store({s.local}, {s.gmem}, at, first + tidx)" for s in tensors.stores),
    ]
