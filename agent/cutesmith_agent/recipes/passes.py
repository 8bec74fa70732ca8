"""One reading of a row, chunk by chunk: accumulators that a chunk updates, results that it writes.

A row that does not fit in registers is read once per group of reductions that can run together; `online` has those that
can although one waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .accesses import Access, Tensors
from .contract import Unsupported
from .ir import Expr, Load, Op, Pick, Reduce, arguments, walk
from .online import is_online_sum, is_squared_distance
from .text import NOUNS, Writer

COMBINE = {"sum": "operator.add", "prod": "operator.mul", "max": "cute.math.max", "min": "cute.math.min"}
NEUTRAL = {"sum": "0.0", "prod": "1.0", "max": "-float('inf')", "min": "float('inf')"}
REDUCE_OP = {"sum": "ADD", "prod": "MUL", "max": "MAX", "min": "MIN"}


@dataclass(frozen=True)
class Group:
    """Reductions of one pass. `online`: sums of exponentials that run along with their maximum, by its id; `moments`:
    squared distances that run along with the sum they are centred by, by its id."""

    reductions: tuple[Reduce, ...]
    online: dict[int, Reduce]
    moments: dict[int, Reduce] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Reduce, ...]:
        return (*self.reductions, *self.online.values(), *self.moments.values())


def groups(roots: tuple[Expr, ...], *, indices: bool = False, columns: int = 0) -> tuple[Group, ...]:
    """Passes in order: each holds every reduction whose operands are known by then.

    `indices`: argmax is covered. `columns`: of a row, where variances are to be had in one pass with their means."""
    waiting = [e for e in walk(roots) if isinstance(e, Reduce)]
    known: set[int] = set()
    passes = []
    while waiting:
        ready = [r for r in waiting if all(id(e) in known for e in _reductions_under(r.arg))]
        online = {id(m): s for m in ready for s in waiting if is_online_sum(s, m)}
        moments = {id(t): s for t in ready for s in waiting if is_squared_distance(s, t, columns)}
        if not indices and any(r.kind in ("argmax", "argmin") for r in ready):
            raise Unsupported(f"no recipe covers an {ready[0].kind} over rows this long")
        group = Group(tuple(ready), online, moments)
        passes.append(group)
        known |= {id(r) for r in group.all}
        waiting = [r for r in waiting if id(r) not in known]
    return tuple(passes)


def _reductions_under(e: Expr) -> list[Reduce]:
    return [r for r in walk((e,)) if isinstance(r, Reduce)]


@dataclass
class PassText:
    """A Python function of the kernel's program that handles one chunk, and how the kernel calls it."""

    lines: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)  # tensors and row values it is given
    accumulators: list[str] = field(default_factory=list)


Reader = Callable[[Access], tuple[str, tuple[str, ...]]]  # how a pass reads an operand, and what it needs for that


def plain_read(access: Access) -> tuple[str, tuple[str, ...]]:
    return f"load({access.gmem}, row, chunk, width, steps, stride)", (access.gmem,)


def read_by_priority(access: Access) -> tuple[str, tuple[str, ...]]:
    """With LOAD_BY_PRIORITY: rows bypass the L1 cache, which then keeps the operands that all rows share."""
    priority = "SHARED" if access.is_shared else "ONCE"
    return f"load({access.gmem}, row, chunk, width, steps, stride, {priority})", (access.gmem,)


def pass_function(
    name: str,
    group: Group,
    stores: tuple[Access, ...],
    tensors: Tensors,
    scalars: Writer,
    read: Reader = plain_read,
) -> PassText:
    """`scalars` names the row values known before this pass; the function gets those it reads as arguments."""
    text = PassText()
    writer = Writer(scalars.fast, names=dict(scalars.names), taken=set(scalars.taken))
    roots = (*(r.arg for r in group.reductions), *(s.store.expr for s in stores if s.store is not None))
    name_row_loads(roots, tensors, scalars)
    name_row_values(roots, scalars)
    writer.names.update(scalars.names)
    writer.taken.update(scalars.taken)
    writer.count(roots)
    _load_columns(roots, tensors, writer, text, read)
    for r in group.reductions:
        _accumulate(r, group, writer, text)
    for access in stores:
        assert access.store is not None
        text.operands.append(access.gmem)
        writer.lines.append(
            f"store({writer.write(access.store.expr)}, {access.gmem}, row, chunk, width, steps, stride)"
        )
    text.operands += sorted(read_names(roots, scalars) - set(text.operands))
    header = ", ".join(("row", "chunk", "width", "steps", "stride", *text.operands, *text.accumulators))
    returns = [f"    return {', '.join(text.accumulators)}"] if text.accumulators else []
    text.lines = [f"def {name}({header}):", *(f"    {line}" for line in writer.lines), *returns, ""]
    return text


def name_row_loads(roots: tuple[Expr, ...], tensors: Tensors, scalars: Writer) -> None:
    """Per-row operands are read once, before the first pass that needs them."""
    needed = tuple(walk(roots))
    for access in tensors.loads:
        load = access.load
        if load is None or load.per_column or load.picked or load not in needed or id(load) in scalars.names:
            continue
        name = scalars.name(load, access.local)
        scalars.lines.append(f"{name} = {access.gmem}[row, 0].to(cutlass.Float32)")
    places = {id(access.load): access for access in tensors.loads}
    for e in needed:
        if isinstance(e, Pick) and id(e) not in scalars.names:
            name_pick(e, places[id(e.load)], scalars)


def name_pick(e: Pick, access: Access, scalars: Writer) -> None:
    """One element of a row, at the place that a value of the row names."""
    index = scalars.write(e.index)
    name = scalars.name(e, access.local)
    scalars.lines.append(f"{name} = {access.gmem}[row, cutlass.Int32({index})].to(cutlass.Float32)")


def name_row_values(roots: tuple[Expr, ...], scalars: Writer) -> None:
    """What depends on the row alone is computed once, outside the loop: the largest such expressions get names."""
    stack, seen = list(roots), set()
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if isinstance(e, Op) and not e.per_column:
            scalars.assign(e)
        else:
            stack.extend(arguments(e))


def read_names(roots: tuple[Expr, ...], scalars: Writer) -> set[str]:
    """The named row values that the roots read, not looking below them."""
    found: set[str] = set()
    stack = list(roots)
    while stack:
        e = stack.pop()
        if id(e) in scalars.names:
            found.add(scalars.names[id(e)])
        else:
            stack.extend(arguments(e))
    return found


def _load_columns(roots: tuple[Expr, ...], tensors: Tensors, writer: Writer, text: PassText, read: Reader) -> None:
    needed = {id(e) for e in below(roots, writer) if isinstance(e, Load)}
    for access in tensors.loads:
        if access.load is not None and id(access.load) in needed and access.per_column:
            local = writer.name(access.load, access.local)
            call, operands = read(access)
            text.operands += [operand for operand in operands if operand not in text.operands]
            writer.lines.append(f"{local} = {call}")


def below(roots: tuple[Expr, ...], writer: Writer) -> list[Expr]:
    """Expressions under the roots, not looking below those that already have a name."""
    found, stack, seen = [], list(roots), set()
    while stack:
        e = stack.pop()
        if id(e) in seen or id(e) in writer.names:
            continue
        seen.add(id(e))
        found.append(e)
        stack.extend(arguments(e))
    return found


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
        return
    spread = group.moments.get(id(r))
    if spread is not None:
        own = (name, writer.name(spread, "squares"), writer.fresh("count"))
        text.accumulators += own[1:]
        writer.lines.append(f"{', '.join(own)} = moments({values}, {', '.join(own)})")
        return
    partial = f"cutlass.Float32({values}.reduce(cute.ReductionOp.{REDUCE_OP[r.kind]}, {NEUTRAL[r.kind]}, 0))"
    if not values.isidentifier():
        partial = partial.replace(f"{values}.reduce", f"({values}).reduce", 1)
    combined = {"sum": f"{name} + {partial}", "prod": f"{name} * {partial}"}.get(
        r.kind, f"{COMBINE[r.kind]}({name}, {partial})"
    )
    writer.lines.append(f"{name} = {combined}")


def combined(kind: str, left: str, right: str) -> str:
    """Two partial results of a reduction as one."""
    sign = {"sum": "+", "prod": "*"}.get(kind)
    return f"{left} {sign} {right}" if sign else f"{COMBINE[kind]}({left}, {right})"


LOAD = (
    "def load(g, row, chunk, width, steps, stride):",
    '    """`steps` accesses of `width` elements of a row in fp32, `stride` accesses apart."""',
    "    tiles = cute.zipped_divide(g[row, None], (width,))",
    "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
    "    for step in range(steps):",
    "        cute.autovec_copy(tiles[None, chunk + step * stride], fragment[None, step])",
    "    return fragment.load().to(cutlass.Float32)",
    "",
)
LOAD_BY_PRIORITY = (
    "SHARED = cute.nvgpu.CacheEvictionPriority.EVICT_NORMAL  # by all rows: L1 keeps it",
    "ONCE = cute.nvgpu.CacheEvictionPriority.NO_ALLOCATE  # read by one row alone: leaves L1 to what is shared",
    "",
    "def load(g, row, chunk, width, steps, stride, priority):",
    *LOAD[1:5],
    "        tile = tiles[None, chunk + step * stride]",
    "        cute.autovec_copy(tile, fragment[None, step], l1c_evict_priority=priority)",
    *LOAD[6:],
)
STORE = (
    "def store(result, g, row, chunk, width, steps, stride):",
    "    tiles = cute.zipped_divide(g[row, None], (width,))",
    "    fragment = cute.make_rmem_tensor((width, steps), g.element_type)",
    "    fragment.store(result.to(g.element_type))",
    "    for step in range(steps):",
    "        cute.autovec_copy(fragment[None, step], tiles[None, chunk + step * stride])",
    "",
)
ACROSS = (
    "@cute.jit",
    "def across(value, combine: cutlass.Constexpr, sRow: cute.Tensor, slot: cutlass.Constexpr, tidx):",
    '    """One value per thread to one per row: shuffles in the warp, shared memory beyond; one fixed order."""',
    "    value = cute.arch.warp_reduction(value, combine, threads_in_group=min(THREADS_PER_ROW, 32))",
    "    if cutlass.const_expr(WARPS_PER_ROW > 1):",
    "        row, warp = tidx // THREADS_PER_ROW, tidx % THREADS_PER_ROW // 32",
    "        if tidx % 32 == 0:",
    "            sRow[slot, row, warp] = value",
    "        cute.arch.sync_threads()",
    "        value = sRow[slot, row, tidx % WARPS_PER_ROW]",
    "        value = cute.arch.warp_reduction(value, combine, threads_in_group=WARPS_PER_ROW)",
    "    return value",
    "",
)
