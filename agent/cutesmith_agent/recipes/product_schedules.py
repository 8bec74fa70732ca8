"""Schedules of the product on Hopper, best guess first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .product_views import Views

H200, A100 = 132, 108  # multiprocessors: how many tiles keep them all at work
SHARED = 227 * 1024 - 1024  # bytes of shared memory that a block may have, less its barriers
MAX_SPLITS = 64
SHORT = 512  # values of depth


@dataclass(frozen=True)
class HopperSchedule:
    """Tiles of m x n results, summed over k values at a time; `m_blocks` x `n_blocks` blocks share what they load."""

    m: int
    n: int
    k: int
    m_blocks: int
    n_blocks: int
    group: int
    splits: int = 1
    parts: int = 2  # matrices that stand for a factor
    per_mp: int = 1  # blocks of a multiprocessor
    is_direct: bool = False  # fp32 tiles come as they are and are split in the block

    @property
    def stages(self) -> int:
        """As many as shared memory holds beside 16 rows of 40 values in which each warp turns results."""
        left = SHARED // self.per_mp - 160 * self.m
        stage = 2 * self.parts * self.k * (self.m + self.n)
        if self.is_direct:  # two turns of two parts, and powers of two
            left, stage = left - 8 * (self.k + 1) * (self.m + self.n), 2 * stage
        return min(8, left // stage)

    @property
    def registers(self) -> tuple[int, int]:
        """Of the warp that loads and its three idle neighbours, and of those that multiply: 65,536 in all at most."""
        return _REGISTERS[self.m, self.per_mp]

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("TILE_M", self.m, "rows of a block's tile"),
            ("TILE_N", self.n, "columns of it"),
            ("TILE_K", self.k, "values that tensor cores sum before the sum goes into fp32 registers"),
            ("STAGES", self.stages, "tiles of both factors in shared memory"),
            ("CLUSTER_M", self.m_blocks, "blocks, one below the other, that share tiles of the right factor"),
            ("CLUSTER_N", self.n_blocks, "blocks side by side that share tiles of the left factor"),
            ("GROUP", self.group, "clusters of rows that are worked off together, for the L2 cache"),
            ("SPLITS", self.splits, "blocks that share the depth of one tile"),
            ("BLOCKS_PER_MP", self.per_mp, "blocks of a multiprocessor, whose work overlaps"),
            ("BLOCKS", H200 * self.per_mp, "blocks that take tile after tile"),
            ("PRODUCER_REGISTERS", self.registers[0], "of a thread that loads, and"),
            ("CONSUMER_REGISTERS", self.registers[1], "of one that multiplies: 65,536 in all at most"),
        )


_REGISTERS = {(64, 1): (40, 240), (128, 1): (40, 232), (128, 2): (24, 104), (192, 1): (32, 160), (256, 1): (24, 112)}

_SHAPES = (
    (128, 128, 64, 2, 1, 8),
    (128, 128, 64, 1, 2, 8),
    (128, 192, 32, 2, 1, 8),
    (128, 128, 32, 2, 1, 8),
    (128, 128, 64, 1, 1, 16),
    (128, 128, 64, 2, 1, 16),
    (128, 192, 64, 2, 1, 4),
    (192, 128, 32, 1, 2, 8),
    (128, 64, 64, 2, 1, 8),
)


_HALF_SHAPES = (
    (128, 256, 64, 2, 1, 8),
    (128, 256, 64, 1, 2, 8),
    (256, 128, 64, 1, 2, 8),
    (128, 192, 64, 2, 1, 8),
    (128, 128, 64, 2, 1, 8),
    (128, 256, 64, 1, 1, 16),
    (128, 128, 64, 1, 2, 8),
    (128, 64, 64, 2, 1, 8),
    (64, 256, 64, 1, 1, 8),
    (64, 128, 64, 1, 1, 8),
    (64, 32, 128, 1, 4, 8),
    (128, 32, 128, 1, 4, 8),
)
_DIRECT_SHAPES = ((128, 128, 32, 1, 1, 8), (128, 128, 32, 2, 1, 8))
DIRECT = 1.6  # times as long as multiplying parts, which other warps would have made
SHALLOW = 256  # values of depth up to which results take longer to write than to sum
_SHALLOW_SHAPES = ((128, 64, 32, 1, 2, 8), (128, 64, 32, 2, 1, 8))  # two blocks at a time

# Time of a tile's shape beside the best, where tiles divide everything: of parts at 4096³ on an H200, 2026-11-29; of
# factors in half precision by what a tile loads for what it multiplies.
_SLOWER = {
    (2, 128, 64, 64): 1.15,
    (2, 128, 192, 32): 1.17,
    (2, 128, 128, 32): 1.1,
    (2, 128, 192, 64): 1.06,
    (2, 192, 128, 32): 1.08,
    (1, 128, 192, 64): 1.04,
    (1, 128, 128, 64): 1.12,
    (1, 128, 64, 64): 1.4,
    (1, 64, 256, 64): 1.15,
    (1, 64, 128, 64): 1.4,
    (1, 64, 32, 128): 2.0,
    (1, 128, 32, 128): 2.0,
}
LOADED = 36.0  # bytes that a multiprocessor gets from L2 in a cycle while all do
PRODUCTS = 2048  # that a multiprocessor's tensor cores do in a cycle
BYTES = 18.0  # that one reads or writes in a cycle while all do
TILE_CYCLES = 1500.0  # from a tile's first load to its first product, and from the last to what is stored
COMBINE_CYCLES = 4000.0  # of a launch that adds up what blocks summed


def hopper(views: Views) -> tuple[HopperSchedule, ...]:
    """For H100 and H200: best guess first."""
    made = []
    shapes = [(shape, 1) for shape in (_HALF_SHAPES if views.is_half else _SHAPES)]
    if views.depth <= SHALLOW:
        shapes += [(shape, 2) for shape in _SHALLOW_SHAPES]
    ones = [HopperSchedule(*shape, parts=views.parts, per_mp=per_mp) for shape, per_mp in shapes]
    if views.can_be_direct:
        ones += [HopperSchedule(*shape, parts=1, is_direct=True) for shape in _DIRECT_SHAPES]
    for one in ones:
        m_blocks = min(one.m_blocks, -(-views.size("rows") // one.m))  # no larger cluster than there are tiles
        n_blocks = min(one.n_blocks, -(-views.size("columns") // one.n))
        made.append(_with_splits(replace(one, m_blocks=m_blocks, n_blocks=n_blocks), views))
    made.sort(key=lambda each: (_is_coarse(each, views), _order(_cycles(each, views))))
    return tuple(dict.fromkeys(made))


def _is_coarse(schedule: HopperSchedule, views: Views) -> bool:
    """Whether tensor cores would sum so much of a short depth that fp32 arithmetic, which rounds, does better."""
    return not views.is_half and views.depth <= SHORT and schedule.k > 32


def _order(cycles: float) -> int:
    """In steps of 4 percent, so that the order of the guesses decides between near ones."""
    return round(math.log(cycles) / 0.04)


def _with_splits(schedule: HopperSchedule, views: Views) -> HopperSchedule:
    """As many blocks for the depth of a tile as are quickest, each with some of it."""
    chunks = -(-views.depth // schedule.k)
    most = min(MAX_SPLITS, max(1, chunks // 4), max(1, 2 * H200 // _tiles(views, schedule.m, schedule.n)))
    shares = {-(-chunks // splits) for splits in range(1, most + 1)}
    found = [replace(schedule, splits=-(-chunks // share)) for share in shares]
    return min(found, key=lambda each: (_cycles(each, views), each.splits))


def _cycles(schedule: HopperSchedule, views: Views) -> float:
    """What the product takes, by waves of tiles: arithmetic, then what is left over of loads and stores."""
    terms = 1 if views.is_half else 3
    chunks = math.ceil(math.ceil(views.depth / schedule.k) / schedule.splits)
    slower = _SLOWER.get((schedule.parts, schedule.m, schedule.n, schedule.k), 1.0)
    slower = DIRECT if schedule.is_direct else slower
    value = 2 if views.is_half else 4  # bytes that a block loads for one
    work = slower * chunks * schedule.k * schedule.m * schedule.n * terms / PRODUCTS
    lines = schedule.m / schedule.n_blocks + schedule.n / schedule.m_blocks
    work = max(work, chunks * schedule.k * lines * value / LOADED)
    size = 4 if schedule.splits > 1 or not views.is_half else 2
    stored = schedule.m * schedule.n * size / BYTES
    clusters = -(-views.size("rows") // (schedule.m * schedule.m_blocks))
    clusters *= -(-views.size("columns") // (schedule.n * schedule.n_blocks)) * views.size("batches") * schedule.splits
    waves = -(-clusters // (H200 // (schedule.m_blocks * schedule.n_blocks)))
    total = waves * (max(work, stored) + (TILE_CYCLES + min(work, stored) / 2) / schedule.per_mp)
    factors = (views.size("rows") + views.size("columns")) * views.depth * views.size("batches")
    total = max(total, factors * value / (H200 * BYTES))
    if not (views.is_half or schedule.is_direct):  # a pass that reads factors once or twice and writes them
        total += COMBINE_CYCLES + factors * 10 / (H200 * BYTES)
    if schedule.splits > 1:
        results = views.size("rows") * views.size("columns") * views.size("batches")
        total += COMBINE_CYCLES + results * 4 * (schedule.splits + 1) / (H200 * BYTES)
    return total


@dataclass(frozen=True)
class AmpereSchedule:
    """Tiles of m x n results by `m_warps` x `n_warps` warps; `group` rows of tiles are worked off together."""

    m: int
    n: int
    m_warps: int
    n_warps: int
    stages: int
    group: int
    k: int = 32
    splits: int = 1
    parts: int = 2  # matrices that stand for a factor

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("TILE_M", self.m, "rows of a block's tile"),
            ("TILE_N", self.n, "columns of it"),
            ("TILE_K", self.k, "values that tensor cores sum before the sum goes into fp32 registers"),
            ("WARPS_M", self.m_warps, "warps below one another, and"),
            ("WARPS_N", self.n_warps, "side by side"),
            ("STAGES", self.stages, "tiles of both factors in shared memory"),
            ("GROUP", self.group, "rows of tiles that are worked off together, for the L2 cache"),
            ("SPLITS", self.splits, "blocks that share the depth of one tile"),
        )


_AMPERE_SHAPES = (
    (128, 128, 2, 4, 3, 8),
    (64, 64, 2, 2, 3, 8),
    (128, 64, 2, 2, 3, 8),
    (64, 128, 2, 4, 3, 8),
    (128, 128, 4, 2, 3, 4),
)


def ampere(views: Views) -> tuple[AmpereSchedule, ...]:
    """For an A100, and for what is newer where nothing better is known."""
    shapes = [AmpereSchedule(*shape, parts=views.parts) for shape in _AMPERE_SHAPES]
    made = [replace(one, splits=_splits(views, one.m, one.n, one.k, A100)) for one in shapes]
    return tuple(sorted(made, key=lambda each: _guess(each, views)))


def _guess(schedule: AmpereSchedule, views: Views) -> float:
    """Idle multiprocessors, and how much a tile loads beside what it multiplies: not measured."""
    loads = 1 + 16 / schedule.m + 16 / schedule.n
    return round(loads * _waste(views, schedule.m, schedule.n, schedule.splits, A100), 1)


def _tiles(views: Views, m: int, n: int) -> int:
    return -(-views.size("rows") // m) * -(-views.size("columns") // n) * views.size("batches")


def _splits(views: Views, m: int, n: int, k: int, multiprocessors: int) -> int:
    """Blocks for the depth of a tile where tiles are few."""
    return max(1, min(multiprocessors // _tiles(views, m, n), -(-views.depth // k) // 8, MAX_SPLITS))


def _waste(views: Views, m: int, n: int, splits: int, multiprocessors: int) -> float:
    """How much longer tiles take than their arithmetic: multiprocessors that idle, and what lies past the edges."""
    tiles = _tiles(views, m, n)
    computed = tiles * m * n / (views.size("rows") * views.size("columns") * views.size("batches"))
    waves = -(-tiles * splits // multiprocessors)
    return computed * waves * multiprocessors / (tiles * splits)
