"""Grids, clusters and blocks: which blocks a batch has, and where in the grid they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

WARP = 32
Array = np.ndarray[Any, np.dtype[Any]]
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Shape:
    """`places`: the blocks of this batch, by number in the grid; by cluster, where those are larger."""

    grid: Triple
    block: Triple
    places: Array
    cluster: Triple = (1, 1, 1)

    @property
    def count(self) -> int:
        return self.places.size

    @property
    def threads(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def padded(self) -> int:
        """Threads of a block filled up to whole warps; those added never run."""
        return -(-self.threads // WARP) * WARP

    @property
    def cluster_size(self) -> int:
        return math.prod(self.cluster)

    @property
    def block_numbers(self) -> Array:
        """Of each block of the batch, its number in the grid: cluster by cluster, within one by rank."""
        places = self.places
        if self.cluster_size == 1:
            return places
        clusters = (self.grid[0] // self.cluster[0], self.grid[1] // self.cluster[1], self.grid[2] // self.cluster[2])
        outer = coordinates(places // self.cluster_size, clusters)
        inner = coordinates(places % self.cluster_size, self.cluster)
        x, y, z = (outer[axis] * self.cluster[axis] + inner[axis] for axis in range(3))
        return x + self.grid[0] * (y + self.grid[1] * z)


def coordinates(number: Any, extents: Triple) -> tuple[Any, Any, Any]:
    """Of a block or thread by its number, or of an array of them."""
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)
