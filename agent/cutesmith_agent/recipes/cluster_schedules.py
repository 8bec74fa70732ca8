"""How a cluster of blocks shares a row, and what of it stays in their shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Access, Tensors, tensors_of
from .ir import Expr, Load, Reduce, arguments
from .layout import ITEMSIZE
from .lowering import Program
from .passes import groups
from .rows import row_vector
from .text import loads_of

SHARED_BYTES = 224 << 10  # of a block's 227 KiB: the rest is for the parts' results
BLOCKS_BYTES = {2: 110 << 10, 3: 73 << 10}  # for so many blocks of an SM to share it
MOST_BYTES = 256 << 10  # of a block's part, so that what many of them read again is still in L2
CLUSTERS = (2, 4, 8)  # blocks; larger clusters are not portable


@dataclass(frozen=True)
class ClusterSchedule:
    vector: int
    threads: int
    unroll: int
    cluster: int
    kept: int = 0  # rounds of accesses that stay in shared memory, where not all do

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        kept = ("KEPT", self.kept, "rounds of accesses that stay in shared memory; later ones are read again, from L2")
        return (*self._shared(), kept) if self.kept else self._shared()

    def _shared(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("VECTOR", self.vector, "elements per access, 16 bytes where the tensors are aligned"),
            ("THREADS_PER_ROW", self.threads, "threads of a block"),
            ("UNROLL", self.unroll, "accesses in flight per thread and tensor"),
            ("CLUSTER", self.cluster, "blocks that share a row"),
        )


def schedules(program: Program) -> tuple[ClusterSchedule, ...]:
    """Where a row fits in the shared memory of several blocks of an SM, the smallest such cluster and the largest.

    Longer rows: blocks of which two or three share an SM, that one works while another waits; what they do not keep
    comes from L2 the second time. Then one block an SM that keeps all. None where a row need not be read twice."""
    tensors = tensors_of(program, loads_of(tuple(s.expr for s in program.stores)))
    kept = kept_accesses(program, tensors)
    vector = row_vector(program)
    scale = min(max(4 // vector, 1), 4)  # narrow accesses: more of them in flight
    size = vector * sum(ITEMSIZE[a.dtype] for a in kept)  # bytes of an access
    chunks = {cluster: -(-(program.columns // vector) // cluster) for cluster in CLUSTERS}  # of a block's part
    part = {cluster: chunks[cluster] * size for cluster in CLUSTERS}
    fitting = [cluster for cluster in CLUSTERS if part[cluster] <= SHARED_BYTES] if kept else []
    shared = [c for c in fitting if part[c] <= BLOCKS_BYTES[2]]
    found = [
        ClusterSchedule(vector, t, max(min(4 * scale, chunks[c] // t), 1), c) for t in (512, 256) for c in _ends(shared)
    ]
    if not shared and kept and part[CLUSTERS[-1]] <= MOST_BYTES:
        found += _partlykept_accesses(vector, size, part[CLUSTERS[-1]])
    found += [ClusterSchedule(vector, t, u * scale, c) for c in fitting[:1] for t, u in ((1024, 4), (512, 4))]
    return tuple(dict.fromkeys(found))


def _ends(clusters: list[int]) -> list[int]:
    return clusters[:1] + clusters[1:][-1:]


def _partlykept_accesses(vector: int, size: int, part: int) -> list[ClusterSchedule]:
    """Blocks of which several share an SM; `size`: bytes of an access, `part`: of a block."""
    found = []
    for blocks, threads, unroll in ((2, 512, 4), (3, 512, 2), (2, 512, 8), (2, 1024, 2)):
        rounds = BLOCKS_BYTES[blocks] // (threads * unroll * size)
        if 0 < rounds < part // (threads * unroll * size):
            found.append(ClusterSchedule(vector, threads, unroll, CLUSTERS[-1], rounds))
    return found


def _stages(program: Program) -> list[tuple[Expr, ...]]:
    """What each reading of the row computes: groups of reductions, then the results that have a value per column."""
    roots = tuple(s.expr for s in program.stores)
    written = tuple(s.expr for s in program.stores if s.per_column)
    return [*(tuple(r.arg for r in group.reductions) for group in groups(roots)), written]


def kept_accesses(program: Program, tensors: Tensors) -> tuple[Access, ...]:
    """The operands that more than one reading needs and that rows do not share."""
    needed = [_column_loads(stage) for stage in _stages(program)]
    return tuple(
        a
        for a in tensors.loads
        if a.per_column and not a.is_shared and sum(a.load in loads for loads in needed if a.load is not None) > 1
    )


def _column_loads(roots: tuple[Expr, ...]) -> set[Load]:
    """The loads under the roots, not looking below reductions."""
    found: set[Load] = set()
    stack: list[Expr] = list(roots)
    while stack:
        e = stack.pop()
        if isinstance(e, Load):
            found.add(e)
        elif not isinstance(e, Reduce):
            stack.extend(arguments(e))
    return found
