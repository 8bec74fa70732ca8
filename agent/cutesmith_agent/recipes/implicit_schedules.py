"""Schedules of convolutions as matrix products, best guess first."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .implicit_geometry import EIGHT, Convolution
from .product_schedules import H200

SHARED = 227 * 1024  # bytes of shared memory that a multiprocessor has for its blocks
KEPT_BACK = 2048  # of each block's, for barriers and what the hardware takes
REGISTERS = 65536  # of a multiprocessor
OTHERS = 64  # registers of a thread besides sums
FEW_OTHERS = 32  # where the sums are in shared memory when results are computed
SHORT = 512  # values of depth
SHORTEST = 96  # that tensor cores may sum alone: what they truncate stays below fp32's roundings
STAGED = 64  # channels
SIDE = 8  # a warpgroup has 8 x 8 positions
HELD = 64  # fp32 values that a thread reads before it splits them
MOST_PRODUCTS = 72  # of tensor cores in straight code
MOST_STAGES = 6  # where they do not hold all of the weight


@dataclass(frozen=True)
class ImplicitSchedule:
    """A block's tile: warpgroups of 8 x 8 positions along depth, height and width, `n` channels of results."""

    found: Convolution
    groups: tuple[int, int, int]
    n: int
    per_mp: int  # blocks of a multiprocessor
    parts: int = 2  # fp16 numbers that stand for an fp32 number; one has as many digits as TF32
    summed: bool = False  # a tile's results are added up by channels
    in_rows: bool = False  # sums go by way of shared memory, in the order of the results
    reduced: bool = False  # a tile has all channels

    @property
    def tile(self) -> tuple[int, int, int]:
        z, y, x = self.groups
        return z, SIDE * y, SIDE * x

    @property
    def halo(self) -> int:
        """Places of the input that a tile's windows cover."""
        return math.prod(t + dim.reach - 1 for t, dim in zip(self.tile, self.found.along, strict=True))

    @property
    def threads(self) -> int:
        """Those that multiply."""
        return 128 * math.prod(self.groups)

    @property
    def tiles(self) -> int:
        """Of an image."""
        return math.prod(_over(dim.positions, t) for t, dim in zip(self.tile, self.found.along, strict=True))

    @property
    def plane(self) -> int:
        """Results of a channel in shared memory: of one phase along depth and height, of all along the width."""
        return math.prod(self.tile) * self.found.along[2].step

    @property
    def staged(self) -> int:
        """Channels in shared memory at a time: all, where phases alternate in a row or channels are reduced."""
        several = self.found.along[2].step > 1 or self.reduced
        return self.n if several else max(c for c in range(EIGHT, STAGED + 1, EIGHT) if self.n % c == 0)

    @property
    def eights(self) -> int:
        """Of channels: one, or an even number."""
        whole = _over(self.found.channels, EIGHT)
        return whole + whole % 2 if whole > 1 else 1

    @property
    def round(self) -> int:
        """Eights of channels that are multiplied in one piece of straight code: more where taps are few."""
        even = [r for r in range(self.eights, 2, -2) if self.eights % r == 0]
        products = sum(self.found.taps) * (3 if self.parts == 2 else 1)
        return next((r for r in even if products * r // 2 <= MOST_PRODUCTS), min(self.eights, 2))

    @property
    def rounds(self) -> int:
        return self.eights // self.round

    @property
    def is_promoted(self) -> bool:
        """Whether sums go into fp32 registers on the way: what tensor cores truncate does not cancel out in a mean."""
        return self.parts == 2 and (self.summed or self.found.channels * max(self.found.taps) > SHORTEST)

    @property
    def steps(self) -> int:
        """Of 16 values, that tensor cores sum before the sum goes into fp32 registers: 32 values of a short depth."""
        most = _over(max(self.found.taps) * self.round, 2)
        is_short = self.is_promoted and self.found.channels * max(self.found.taps) <= SHORT
        return 2 if is_short else _over(most, _over(most, 4))

    @property
    def pieces(self) -> int:
        """Of the weight: so many steps of each round of each phase."""
        return self.rounds * sum(_over(_over(taps * self.round, 2), self.steps) for taps in self.found.taps)

    @property
    def slabs(self) -> int:
        """Pieces in which a tile's channels are read, so that a thread has few values at a time."""
        parts = [s for s in range(1, self.rounds + 1) if self.rounds % s == 0]
        items = self.rounds * self.round * self.halo
        return next((s for s in parts if EIGHT * _over(items // s, self.threads) <= HELD), self.rounds)

    @property
    def room(self) -> int:
        """Stages that shared memory holds beside the input."""
        left = SHARED // self.per_mp - KEPT_BACK - 2 * EIGHT * self.parts * self.halo * self.round * self.rounds
        left -= self.n * self.threads // 8 if self.summed else 0  # an fp32 number of each warp and channel
        left -= 4 * self.staged * (self.plane + 4) if self.in_rows else 0
        return left // (32 * self.n * self.steps * self.parts)

    @property
    def is_kept(self) -> bool:
        """Whether the weight's parts stay in shared memory."""
        return self.room >= self.pieces

    @property
    def stages(self) -> int:
        return self.pieces if self.is_kept else min(self.room, MOST_STAGES)

    @property
    def fits(self) -> bool:
        registers = min(255, REGISTERS // (self.per_mp * self.threads))
        sums = self.n if self.is_promoted or self.reduced else self.n // 2  # twice as many, or as many other vectors
        others = FEW_OTHERS if self.in_rows and not self.reduced else OTHERS
        return self.room >= min(self.pieces, 2) and registers >= sums + others

    @property
    def workspace(self) -> int:
        """fp32 values: the weight's parts and their powers of two."""
        tiles = _over(self.found.out_channels, self.n)
        return tiles * (self.pieces * EIGHT * self.steps * self.n * self.parts + self.n)

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        z, y, x = self.tile
        return (
            ("TILE_Z", z, "positions of a block's tile: slices,"),
            ("TILE_Y", y, "rows"),
            ("TILE_X", x, "and columns; a warpgroup has 8 x 8 of them"),
            ("TILE_N", self.n, "channels of results of a tile"),
            ("STEPS", self.steps, "steps of 16 values that tensor cores sum before the sum goes into fp32 registers"),
            ("PARTS", self.parts, "fp16 numbers that stand for an fp32 number"),
            ("STAGES", self.stages, "pieces of the weight in shared memory"),
            ("IS_KEPT", int(self.is_kept), "whether those are all, and stay"),
            ("SLABS", self.slabs, "pieces in which a tile's channels are read"),
            ("BLOCKS_PER_MP", self.per_mp, "blocks of a multiprocessor, whose work overlaps"),
            ("BLOCKS", H200 * self.per_mp, "blocks that take tile after tile"),
            *((("STAGED", self.staged, "channels whose sums lie in shared memory at a time"),) if self.in_rows else ()),
            *((("SUMS", self.tiles, "tiles of an image: sums of each of its channels"),) if self.summed else ()),
            *((("IS_AS_TF32", 1, "such a number has as many digits as one in TF32"),) if self.parts == 1 else ()),
            ("VECTOR", 1, "values of an access: neighbouring threads have neighbouring positions"),
        )


_GROUPS = (
    (1, 1, 2),
    (1, 2, 1),
    (1, 2, 2),
    (2, 1, 1),
    (1, 1, 1),
    (4, 1, 1),
    (2, 2, 1),
    (1, 1, 3),
    (1, 3, 1),
    (3, 1, 1),
    (1, 1, 4),
)
_PER_MP = (5, 4, 3, 2, 1)
WHOLE = 512  # threads of the tiles that were fastest on an H200, then of many small blocks (2026-11-30)


def schedules(
    found: Convolution, parts: int, *, summed: bool = False, reduced: bool = False, in_rows: bool = False
) -> tuple[ImplicitSchedule, ...]:
    """For H100 and H200. `reduced`: a tile has all channels."""
    made = []
    for groups in _GROUPS:
        for n in _widths(found)[: 1 if reduced else None]:
            several = [
                ImplicitSchedule(found, groups, n, per_mp, parts, summed, in_rows, reduced) for per_mp in _PER_MP
            ]
            made += [one for one in several if one.fits][:1]
    made = [one for one in made if one.n >= found.out_channels] if reduced else made
    made.sort(key=_guess)
    large = [one for one in made if one.threads == WHOLE][:1]
    if in_rows:
        return tuple(dict.fromkeys((*large, *made)))
    several = [one for one in made if one.per_mp > 1]
    few = found.channels <= EIGHT  # what a tile reads is little beside what it writes
    small = [max(several, key=lambda one: one.per_mp) if few else several[0]] if several else []
    return tuple(dict.fromkeys((*large, *small, *made)))


def _widths(found: Convolution) -> tuple[int, ...]:
    """Channels of a tile: all, or a part that all are a multiple of."""
    whole = EIGHT * _over(found.out_channels, EIGHT)
    parts = tuple(n for n in (128, 96, 64) if n < whole and whole % n == 0)
    return (whole, *parts) if whole <= 128 else parts or (128,)


def _guess(schedule: ImplicitSchedule) -> float:
    """What is computed past the results' edges, read more than once, and written in short rows: not measured."""
    along = zip(schedule.tile, schedule.found.along, strict=True)
    computed = math.prod(_over(dim.positions, t) * t / dim.positions for t, dim in along)
    read = 0.1 * schedule.halo / math.prod(schedule.tile)
    alone = 0.1 * max(0.0, 512 / (schedule.per_mp * schedule.threads) - 1)
    loaded = 0.0 if schedule.is_kept else 0.1 * 128 / math.prod(schedule.tile)
    tiles = 0.15 * (_over(schedule.found.out_channels, schedule.n) - 1)
    narrow = 8 / (schedule.tile[2] * schedule.found.along[2].step) if schedule.in_rows else 0.0
    return round(computed + read + alone + loaded + tiles + narrow, 2)


def _over(one: int, other: int) -> int:
    """Rounded up."""
    return -(-one // other)
