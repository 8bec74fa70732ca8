"""Schedules of the product on Hopper, best guess first."""

from __future__ import annotations

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

    @property
    def stages(self) -> int:
        return min(8, SHARED // (4 * self.k * (self.m + self.n)))

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
            ("BLOCKS", H200, "blocks that take tile after tile: one per multiprocessor"),
        )


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


# Time of a tile's shape beside 128 x 128 x 64 at 4096³ on an H200, 2026-11-29.
_SLOWER = {(128, 64, 64): 1.15, (128, 192, 32): 1.17, (128, 192, 64): 1.06, (192, 128, 32): 1.08}


def hopper(views: Views) -> tuple[HopperSchedule, ...]:
    """For H100 and H200: a first guess that keeps all multiprocessors at work."""
    made = []
    for shape in _SHAPES:
        one = HopperSchedule(*shape)
        m_blocks = min(one.m_blocks, -(-views.size("rows") // one.m))  # no larger cluster than there are tiles
        n_blocks = min(one.n_blocks, -(-views.size("columns") // one.n))
        splits = _splits(views, one.m, one.n, one.k, H200)
        made.append(replace(one, m_blocks=m_blocks, n_blocks=n_blocks, splits=splits))
    made.sort(key=lambda each: (_is_coarse(each, views), _time(each, views)))
    return tuple(dict.fromkeys(made))


def _is_coarse(schedule: HopperSchedule, views: Views) -> bool:
    """Whether tensor cores would sum so much of a short depth that fp32 arithmetic, which rounds, does better."""
    return views.depth <= SHORT and schedule.k > 32


def _time(schedule: HopperSchedule, views: Views) -> float:
    """In tenths of the best shape's where tiles divide everything, so that the order of the guesses decides between
    near ones."""
    tile = (schedule.m, schedule.n, schedule.k)
    return round(_SLOWER.get(tile, 1.0) * _waste(views, schedule.m, schedule.n, schedule.splits, H200), 1)


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
    shapes = [AmpereSchedule(*shape) for shape in _AMPERE_SHAPES]
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
