"""Schedules of convolutions as matrix products, best guess first."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .implicit_geometry import EIGHT, Convolution
from .product_schedules import H200

SHARED = 227 * 1024 - 2048  # bytes of shared memory that a multiprocessor has for its blocks, less what they keep back
SHORT = 512  # values of depth
PARTS = 2
SIDE = 8  # a warpgroup has 8 x 8 positions
HELD = 64  # fp32 values that a thread reads before it splits them


@dataclass(frozen=True)
class ImplicitSchedule:
    """A block's tile: warpgroups of 8 x 8 positions along depth, height and width, `n` channels of results."""

    groups: tuple[int, int, int]
    n: int
    steps: int  # of 16 values, that tensor cores sum before the sum goes into fp32 registers
    channels: int  # eights of channels of a round: one, or two
    rounds: int
    slabs: int  # pieces in which a tile's input is read and scaled
    stages: int
    kept: bool  # the weight's parts stay in shared memory
    per_mp: int

    @property
    def warpgroups(self) -> int:
        return math.prod(self.groups)

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        z, y, x = self.groups
        return (
            ("TILE_Z", z, "positions of a block's tile: slices,"),
            ("TILE_Y", SIDE * y, "rows"),
            ("TILE_X", SIDE * x, "and columns; a warpgroup has 8 x 8 of them"),
            ("TILE_N", self.n, "channels of results of a tile"),
            ("STEPS", self.steps, "steps of 16 values that tensor cores sum before the sum goes into fp32 registers"),
            ("PARTS", PARTS, "fp16 numbers that stand for an fp32 number"),
            ("STAGES", self.stages, "pieces of the weight in shared memory"),
            ("IS_KEPT", int(self.kept), "whether those are all, and stay"),
            ("SLABS", self.slabs, "pieces in which a tile's channels are read, each scaled by a power of two"),
            ("BLOCKS_PER_MP", self.per_mp, "blocks of a multiprocessor, whose work overlaps"),
            ("BLOCKS", H200 * self.per_mp, "blocks that take tile after tile"),
            ("VECTOR", 1, "values of an access: neighbouring threads have neighbouring positions"),
        )


_GROUPS = ((1, 1, 2), (1, 2, 1), (1, 2, 2), (2, 1, 1), (1, 1, 1), (4, 1, 1), (2, 2, 1))


def schedules(found: Convolution) -> tuple[ImplicitSchedule, ...]:
    """For H100 and H200."""
    made = [one for groups in _GROUPS for n in _widths(found) for one in _with(found, groups, n)]
    return tuple(sorted(made, key=lambda each: _guess(found, each)))


def _widths(found: Convolution) -> tuple[int, ...]:
    """Channels of a tile: all, or a part that all are a multiple of."""
    whole = -(-found.out_channels // EIGHT) * EIGHT
    parts = [n for n in (128, 96, 64) if n < whole and whole % n == 0]
    return (whole, *parts) if whole <= 128 else tuple(parts[:2]) or (64,)


def _with(found: Convolution, groups: tuple[int, int, int], n: int) -> list[ImplicitSchedule]:
    eights = -(-found.channels // EIGHT)
    channels = min(2, eights)
    rounds = -(-eights // channels)
    most = max(found.taps) * channels
    most_steps = -(-most // 2)
    steps = 2 if found.channels * max(found.taps) <= SHORT else -(-most_steps // -(-most_steps // 4))
    halo = halo_of(found, groups)
    threads = 128 * math.prod(groups)
    slabs = next(
        s for s in range(1, rounds + 1) if rounds % s == 0 and (-(-rounds // s * channels * halo // threads) * 8 <= HELD or s == rounds)
    )
    return [
        one
        for per_mp in (4, 3, 2, 1)
        if (one := _staged(found, groups, n, steps, channels, rounds, slabs, per_mp, halo)) is not None
    ][:1]


def _staged(
    found: Convolution,
    groups: tuple[int, int, int],
    n: int,
    steps: int,
    channels: int,
    rounds: int,
    slabs: int,
    per_mp: int,
    halo: int,
) -> ImplicitSchedule | None:
    """As many stages as there is room for; None where there is too little of it, or of registers."""
    warpgroups = math.prod(groups)
    registers = 65536 // (per_mp * (128 * warpgroups + 32))
    if registers < n + 48:
        return None
    left = SHARED // per_mp - 1024 - 16 * halo * channels * rounds * PARTS
    stages = left // (32 * n * steps * PARTS)
    pieces = rounds * sum(-(-(-(-taps * channels // 2)) // steps) for taps in found.taps)
    if stages < min(pieces, 2):
        return None
    kept = stages >= pieces
    return ImplicitSchedule(
        groups, n, steps, channels, rounds, slabs, pieces if kept else min(stages, 6), kept, per_mp
    )


def halo_of(found: Convolution, groups: tuple[int, int, int]) -> int:
    """Places of the input that a tile's windows cover."""
    tile = (groups[0], SIDE * groups[1], SIDE * groups[2])
    return math.prod(t + dim.reach - 1 for t, dim in zip(tile, found.along, strict=True))


def _guess(found: Convolution, schedule: ImplicitSchedule) -> float:
    """What is computed past the results' edges, and read more than once: not measured."""
    z, y, x = schedule.groups
    tile = (z, SIDE * y, SIDE * x)
    computed = math.prod(-(-dim.positions // t) * t / dim.positions for t, dim in zip(tile, found.along, strict=True))
    read = 0.1 * halo_of(found, schedule.groups) / math.prod(tile)
    few = 0.1 if schedule.per_mp == 1 else 0.0
    loaded = 0.0 if schedule.kept else 0.1 * 128 / math.prod(tile)
    tiles = 0.15 * (-(-found.out_channels // schedule.n) - 1)
    return round(computed + read + few + loaded + tiles, 2)
