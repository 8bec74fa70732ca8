"""Scans along rows that lie in memory one after the other: a group of threads goes along a row, tile by tile.

A thread accumulates its own neighbouring elements, a warp its threads' totals by shuffles, the row's warps theirs
through shared memory, and a carry goes from tile to tile: every tensor is read or written once, in one fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Tensors, tensors_of
from .contract import Unsupported
from .ir import Reduce, Scan, walk
from .lowering import Program
from .passes import NEUTRAL
from .pointwise import KernelText
from .rows import host, row_of_thread, row_vector
from .scan_helpers import scan_helpers
from .text import Writer, helpers, loads_of

SIGN = {"sum": "operator.add", "prod": "operator.mul"}


@dataclass(frozen=True)
class ScanSchedule:
    vector: int
    threads_per_row: int
    rows_per_block: int
    steps: int

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("VECTOR", self.vector, "neighbouring elements of a thread: an access, 16 bytes where tensors are aligned"),
            ("THREADS_PER_ROW", self.threads_per_row, "threads that share a row"),
            ("ROWS_PER_BLOCK", self.rows_per_block, "rows of a block"),
            ("STEPS", self.steps, "accesses in flight per thread and tensor"),
        )


def scans_of(program: Program) -> tuple[Scan, ...]:
    return tuple(e for e in walk(tuple(s.expr for s in program.stores)) if isinstance(e, Scan))


def schedules(program: Program) -> tuple[ScanSchedule, ...]:
    """Best guess first: rows of a warp where they are short, else a block a row with four accesses in flight."""
    vector = row_vector(program)
    chunks = -(-program.columns // vector)
    shapes = ((32, 4, 1), (32, 4, 4), (32, 8, 2)) if chunks <= 256 else ()
    shapes += ((256, 1, 4), (256, 1, 2), (512, 1, 2), (128, 1, 4), (1024, 1, 1))
    return tuple(ScanSchedule(vector, *shape) for shape in shapes)[:6]


def emit(program: Program, name: str, *, fast: bool) -> KernelText:
    scans = scans_of(program)
    tensors = tensors_of(program, loads_of(tuple(s.expr for s in program.stores)))
    reverse = _direction(program, scans)
    before, body = _body(program, tensors, scans, fast=fast)
    lines = [
        "CHUNKS = COLUMNS // vector  # accesses of a row",
        "TILES = -(-CHUNKS // (THREADS_PER_ROW * STEPS))",
        "WARPS_PER_ROW = THREADS_PER_ROW // 32",
        "PARTS = STEPS * WARPS_PER_ROW  # of a tile, each a warp's totals: no more than a warp has lanes",
        "",
        *helpers(body),
        *scan_helpers(reverse=reverse, exclusive={s.exclusive for s in scans}),
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        *row_of_thread(tensors),
        "    smem = cutlass.memory.SmemAllocator()",
        f"    layout = cute.make_layout(({len(scans)}, 2, ROWS_PER_BLOCK, PARTS))",
        "    sTotals = smem.allocate_tensor(cutlass.Float32, layout, 4)",
        *(f"    {line}" for line in before),
        "    for tile in cutlass.range(TILES):",
        *(f"        {line}" for line in body),
        "",
        *host(program, tensors, name),
    ]
    return KernelText(tuple(lines), tensors)


def _direction(program: Program, scans: tuple[Scan, ...]) -> bool:
    roots = tuple(s.expr for s in program.stores)
    if any(isinstance(e, Reduce) for e in walk(roots)) or not all(s.per_column for s in program.stores):
        raise Unsupported("no recipe covers a scan next to a reduction")
    if len({scan.reverse for scan in scans}) > 1:
        raise Unsupported("no recipe covers scans in both directions in one kernel")
    return scans[0].reverse


def _body(program: Program, tensors: Tensors, scans: tuple[Scan, ...], *, fast: bool) -> tuple[list[str], list[str]]:
    """Statements before the tiles, and those of a tile."""
    roots = tuple(s.expr for s in program.stores)
    writer = Writer(fast)
    writer.count(roots)
    before: list[str] = []
    for a in tensors.loads:
        assert a.load is not None
        local = writer.name(a.load, a.local)
        if a.per_column:
            writer.lines.append(f"{local} = load({a.gmem}, row, tile, lane)")
        else:
            before.append(f"{local} = {a.gmem}[row, 0].to(cutlass.Float32)")
    for number, scan in enumerate(scans):
        carry = writer.fresh("carry")
        before.append(f"{carry} = cutlass.Float32({NEUTRAL[scan.kind]})")
        value = writer.write(scan.arg)
        which = "scan_exclusive" if scan.exclusive else "scan"
        rooms = f"sTotals[{number}, tile % 2, None, None]"
        rest = f"{SIGN[scan.kind]}, {NEUTRAL[scan.kind]}, {rooms}, tidx"
        writer.lines.append(f"{writer.name(scan, 'scanned')}, {carry} = {which}({value}, {carry}, {rest})")
    for a in tensors.stores:
        assert a.store is not None
        writer.lines.append(f"store({writer.write(a.store.expr)}, {a.gmem}, row, tile, lane, live)")
    return before, writer.lines


def applies(program: Program) -> bool:
    return bool(scans_of(program))
