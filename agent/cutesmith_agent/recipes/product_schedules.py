"""Schedules of the product on Hopper, best guess first."""

from __future__ import annotations

from dataclasses import dataclass

from .product_views import Views

MULTIPROCESSORS = 132  # of an H100 or H200: how many tiles keep them all at work
SHARED = 227 * 1024 - 1024  # bytes of shared memory that a block may have, less its barriers
MAX_SPLITS = 64
SHORT = 512  # values of depth


@dataclass(frozen=True)
class ProductSchedule:
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
            ("BLOCKS", MULTIPROCESSORS, "blocks that take tile after tile: one per multiprocessor"),
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


def schedules(views: Views) -> tuple[ProductSchedule, ...]:
    made = [_fitted(ProductSchedule(*shape), views) for shape in _SHAPES]
    made.sort(key=lambda schedule: (_is_coarse(schedule, views), _waste(schedule, views)))
    return tuple(dict.fromkeys(made))


def _is_coarse(schedule: ProductSchedule, views: Views) -> bool:
    """Whether tensor cores would sum so much of a short depth that fp32 arithmetic, which rounds, does better."""
    return views.depth <= SHORT and schedule.k > 32


def _tiles(schedule: ProductSchedule, views: Views) -> int:
    down, across = -(-views.size("rows") // schedule.m), -(-views.size("columns") // schedule.n)
    return down * across * views.size("batches")


def _fitted(schedule: ProductSchedule, views: Views) -> ProductSchedule:
    """With the depth shared where tiles are few, and no larger cluster than there are tiles."""
    m_blocks = min(schedule.m_blocks, -(-views.size("rows") // schedule.m))
    n_blocks = min(schedule.n_blocks, -(-views.size("columns") // schedule.n))
    chunks = -(-views.depth // schedule.k)
    splits = max(1, min(MULTIPROCESSORS // max(1, _tiles(schedule, views)), chunks // 8, MAX_SPLITS))
    return ProductSchedule(schedule.m, schedule.n, schedule.k, m_blocks, n_blocks, schedule.group, splits)


def _waste(schedule: ProductSchedule, views: Views) -> float:
    """How much longer a schedule takes than its tiles' arithmetic, by the multiprocessors that idle and by what a
    tile computes past the edges; equal within a tenth, so that the order above decides."""
    tiles = _tiles(schedule, views)
    computed = tiles * schedule.m * schedule.n / (views.size("rows") * views.size("columns") * views.size("batches"))
    works = tiles * schedule.splits
    waves = -(-works // MULTIPROCESSORS)
    return round(computed * waves * MULTIPROCESSORS / works, 1)
