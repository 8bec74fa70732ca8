"""Schedules of attention, best guess first."""

from __future__ import annotations

from dataclasses import dataclass

from .attention_views import Views

SMALLEST = 99 * 1024  # bytes of shared memory that a block may have on sm_86, 89 and 120
LARGEST = {"sm_80": 163 * 1024, "sm_90a": 227 * 1024, "sm_100a": 227 * 1024}
WIDEST = 256  # columns of a query or a value


@dataclass(frozen=True)
class Schedule:
    """Tiles of queries and of keys; each warp has `queries` / `warps` rows of scores."""

    queries: int
    keys: int
    warps: int
    stages: int

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("TILE_QUERIES", self.queries, "queries of a block"),
            ("TILE_KEYS", self.keys, "keys that a block looks at together"),
            ("WARPS", self.warps, "warps, each with its share of the queries"),
            ("STAGES", self.stages, "tiles of keys and of values in shared memory"),
        )

    def shared(self, views: Views) -> int:
        """Bytes of shared memory."""
        depth, width = (padded(size) for size in (views.depth, views.width))
        value = 4 if views.is_split else 2
        return value * (self.queries * depth + self.stages * self.keys * max(depth, width)) + 1024


@dataclass(frozen=True)
class HopperSchedule:
    """Tiles of queries, 64 to a warpgroup, and of keys."""

    queries: int
    keys: int
    stages: int
    is_in_turn: bool = False  # a tile's results before the next one's scores

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("TILE_QUERIES", self.queries, "queries of a block, 64 to a warpgroup"),
            ("TILE_KEYS", self.keys, "keys that a block looks at together"),
            ("STAGES", self.stages, "tiles of keys, and of values, in shared memory"),
            ("PRODUCER_REGISTERS", _REGISTERS[self.queries][0], "of a thread that loads, and"),
            ("CONSUMER_REGISTERS", _REGISTERS[self.queries][1], "of one that multiplies: 65,536 in all at most"),
        )

    def shared(self, views: Views) -> int:
        """Bytes of shared memory."""
        value = 4 if views.is_split else 2
        return value * (self.queries * views.depth + self.stages * self.keys * (views.depth + views.width)) + 2048


@dataclass(frozen=True)
class WideSchedule:
    """For heads of many columns: tiles of keys, half of them for each of two warpgroups with 64 queries."""

    keys: int
    stages: int
    cluster: int
    summed: int = 32

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("TILE_KEYS", self.keys, "keys that a block has scores of at a time"),
            ("STAGES", self.stages, "tiles of 128 x 32 keys or values in shared memory"),
            ("CLUSTER", self.cluster, "blocks, each with 64 queries, that share what they load"),
            ("SUMMED", self.summed, "weights that tensor cores sum before the sum goes into fp32 registers"),
            ("PRODUCER_REGISTERS", 56, "of a thread that loads or splits, and"),
            ("CONSUMER_REGISTERS", 224, "of one that multiplies: 65,536 in all at most"),
        )


_REGISTERS = {64: (40, 240), 128: (40, 232), 192: (32, 160)}
# In the order measured on an H200, 2026-11-30.
_HOPPER_HALF = ((128, 128, 2), (128, 64, 2), (128, 64, 4))
_HOPPER_NARROW = ((64, 128, 2, True), (128, 128, 2), (192, 128, 2), (128, 64, 2))
_HOPPER_SPLIT = ((128, 64, 1), (128, 64, 2), (128, 32, 2), (64, 64, 2))
_WIDE_ORDER = ((1, 32), (2, 32), (1, 64), (2, 64), (4, 32))  # blocks, weights; sums of 64 are not measured yet
LEAST_QUERIES = 16  # of the 64 that a block has; with fewer, a chain's products share keys among more blocks
MOST = 10


def hopper(views: Views) -> tuple[HopperSchedule, ...]:
    """Where TMA can read tensors, and columns fill instructions."""
    own = ((views.queries, views.depth), (views.keys, views.depth), (views.values, views.width))
    reads = all(view.has_wide_lines(columns) for view, columns in own) and views.queries.alone == views.queries
    if views.depth % 16 or views.width % 16 or max(views.depth, views.width) > WIDEST:
        return ()
    if views.is_split:
        return _fitting(_HOPPER_SPLIT, views) if views.width <= 128 else ()
    return _fitting(_HOPPER_NARROW if views.width <= 64 else _HOPPER_HALF, views) if reads else ()


def wide(views: Views) -> tuple[WideSchedule, ...]:
    """Where heads have more columns than one block has results of in its registers, and enough to fill its tiles."""
    is_filled = views.width > 128 and views.query_count >= LEAST_QUERIES
    if not views.is_split or max(views.depth, views.width) <= WIDEST or not is_filled:
        return ()
    keys, stages = (512, 5) if views.key_count > 256 else (256, 8)
    blocks = -(-views.query_count // 64)
    made = (WideSchedule(keys, stages, cluster, summed) for cluster, summed in _WIDE_ORDER)
    return tuple(each for each in made if each.cluster <= blocks)


def _fitting(shapes: tuple[tuple[int, ...], ...], views: Views) -> tuple[HopperSchedule, ...]:
    made = (HopperSchedule(*shape[:3], is_in_turn=len(shape) > 3) for shape in shapes)
    return tuple(each for each in made if each.shared(views) <= LARGEST["sm_90a"])


_NARROW = (
    (128, 64, 4, 2),
    (64, 64, 4, 2),
    (128, 64, 8, 2),
    (128, 128, 8, 2),
    (64, 128, 4, 2),
    (128, 64, 4, 3),
    (64, 64, 4, 4),
)
_WIDE = (
    (128, 64, 8, 2),
    (64, 64, 4, 2),
    (128, 64, 4, 2),
    (64, 32, 4, 2),
    (128, 32, 8, 2),
    (64, 64, 4, 3),
    (64, 64, 4, 4),
)
_SPLIT = (
    (64, 64, 4, 2),
    (64, 32, 4, 2),
    (128, 64, 8, 2),
    (128, 32, 8, 2),
    (32, 32, 2, 2),
    (16, 32, 1, 2),
    (64, 32, 4, 3),
)


def schedules(views: Views, arch: str) -> tuple[Schedule, ...]:
    """The first fits every device from sm_80 on, the others the one asked for."""
    shapes = _SPLIT if views.is_split else _NARROW if max(views.depth, views.width) <= 64 else _WIDE
    made = [Schedule(*shape) for shape in shapes]
    fitting = [each for each in made if each.shared(views) <= LARGEST.get(arch, SMALLEST)]
    first = next((each for each in fitting if each.shared(views) <= SMALLEST), None)
    if first is None:
        return ()
    useful = [each for each in fitting if each is first or each.queries <= 2 * max(views.query_count, 32)]
    return (first, *(each for each in useful if each is not first))[: MOST - len(hopper(views)) * (arch == "sm_90a")]


def padded(size: int) -> int:
    """Columns in shared memory: of whole instructions."""
    return -(-size // 16) * 16
