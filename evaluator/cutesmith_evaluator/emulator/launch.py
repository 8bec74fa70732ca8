"""A kernel launch: the grid in batches of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.batch import Batch
from cutesmith_evaluator.emulator.counts import Counts
from cutesmith_evaluator.emulator.faults import FaultError
from cutesmith_evaluator.emulator.grid import WARP, Shape
from cutesmith_evaluator.emulator.memory import GlobalMemory
from cutesmith_evaluator.emulator.program import Program
from cutesmith_evaluator.emulator.sampling import PILOT, Budget, PartialLaunch, chosen_blocks, spread
from cutesmith_evaluator.emulator.specials import special_values

_THREADS = 1 << 14  # of a batch: more do not fit the caches with all their registers
_MAX_THREADS = 1024
_SHARED_BYTES = 1 << 28  # of all blocks of a batch
_OWN_BYTES = 1 << 29  # of the registers and the local memory of all threads of a batch
_GRID = ((1 << 31) - 1, 65535, 65535)

Array = np.ndarray[Any, np.dtype[Any]]
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """`arguments`: the kernel's parameters at their offsets. `shared_limit`: bytes that a block may have.

    `cluster_limit`: blocks that a cluster may have.
    """

    grid: Triple
    block: Triple
    dynamic_shared: int
    arguments: bytes
    shared_limit: int = 232448
    cluster: Triple = (1, 1, 1)
    cluster_limit: int = 16


def launch(
    program: Program,
    config: Launch,
    memory: GlobalMemory,
    counts: Counts | None = None,
    between: Callable[[float], None] = lambda done: None,
    budget: Budget | None = None,
) -> Counts:
    """Runs the kernel on all blocks, or on some of them where all would go beyond `budget` and its blocks are
    independent. `between` is called now and then with the part of the launch that is done, and may raise to end it.

    Raises FaultError, UnsupportedError, and DependentError when it turns out that all blocks have to run.
    """
    _check_limits(program, config)
    running = _Running(program, config, memory, counts or Counts(), between)
    running.counts.launches += 1
    running.counts.blocks += running.total * running.together
    running.counts.threads += running.total * running.together * math.prod(config.block)
    if budget is None or running.total <= running.few:
        running.run(range(running.total))
    else:
        running.run_part(budget)
    return running.counts


@dataclass
class _Running:
    """One launch, in clusters of blocks that run `together`: `total` of them, `step` at once."""

    program: Program
    config: Launch
    memory: GlobalMemory
    counts: Counts
    between: Callable[[float], None]

    def __post_init__(self) -> None:
        self.together = math.prod(self.config.cluster)
        self.total = math.prod(self.config.grid) // self.together
        self.step = _blocks_of_batch(self.program, self.config) // self.together

    @property
    def few(self) -> int:
        """Clusters that run whatever they cost: at once, unless each may make very many products."""
        multiplies = any("matrix multiply" in block.families for block in self.program.blocks)
        return PILOT if multiplies else max(self.step, PILOT)

    def run(self, clusters: Array | range) -> None:
        for first in range(0, len(clusters), self.step):
            self._run_batch(np.asarray(clusters[first : first + self.step]), first / len(clusters))

    def run_part(self, budget: Budget) -> None:
        """A few, and then as many others as the budget allows after these."""
        self.memory.launch = part = PartialLaunch(self.program.kernel.name)
        before = self.counts.work
        try:
            pilot = spread(self.total, PILOT)
            self.run(pilot)
            rest = chosen_blocks(self.total, pilot, self.counts.work - before, budget)
            self.run(rest)
            part.complete = pilot.size + rest.size == self.total
        finally:
            self.memory.launch = None

    def _run_batch(self, clusters: Array, done: float) -> None:
        self.between(done)
        places = (clusters[:, None] * self.together + np.arange(self.together)).reshape(-1)
        shape = Shape(self.config.grid, self.config.block, places, self.config.cluster)
        batch = Batch(
            self.program,
            shape,
            self.config.arguments,
            self.memory,
            self.config.dynamic_shared,
            self.counts,
            lambda: self.between(done),
        )
        special_values(batch, self.config.dynamic_shared)
        batch.run()
        self.counts.blocks_run += places.size


def _check_limits(program: Program, config: Launch) -> None:
    name = program.kernel.name
    threads = config.block[0] * config.block[1] * config.block[2]
    if not 0 < threads <= _MAX_THREADS:
        raise FaultError(
            "launch-limit", f"{name} is launched with {threads} threads per block (1 to {_MAX_THREADS})", name
        )
    wanted = program.kernel.threads
    if wanted is not None and wanted != config.block:
        raise FaultError(
            "launch-limit", f"{name} was compiled for blocks of {wanted} and launched with {config.block}", name
        )
    size = max((each.offset + each.size for each in program.kernel.parameters), default=0)
    if size > len(config.arguments):
        words = f"{name} has parameters of {size} bytes and is launched with {len(config.arguments)}"
        raise FaultError("wrong-arguments", words, name)
    if min(config.grid) < 1:
        raise FaultError(
            "launch-limit", f"{name} is launched with a grid of {config.grid}; every extent is at least 1", name
        )
    if any(extent > most for extent, most in zip(config.grid, _GRID, strict=True)):
        words = f"{name} is launched with a grid of {config.grid}; at most {_GRID} is possible"
        raise FaultError("launch-limit", words, name)
    _check_cluster(name, config)
    shared = max(program.shared_bytes, program.dynamic_offset + config.dynamic_shared)
    if shared > config.shared_limit:
        words = f"{name} wants {shared} bytes of shared memory per block (at most {config.shared_limit})"
        raise FaultError("launch-limit", words, name)


def _check_cluster(name: str, config: Launch) -> None:
    size = math.prod(config.cluster)
    if not 0 < size <= config.cluster_limit:
        words = f"{name} is launched in clusters of {config.cluster}; this device has clusters of 1 to "
        raise FaultError("launch-limit", f"{words}{config.cluster_limit} blocks", name)
    if any(extent % along for extent, along in zip(config.grid, config.cluster, strict=True)):
        words = f"{name} is launched with a grid of {config.grid}, which clusters of {config.cluster} do not divide"
        raise FaultError("launch-limit", words, name)


def _blocks_of_batch(program: Program, config: Launch) -> int:
    padded = -(-config.block[0] * config.block[1] * config.block[2] // WARP) * WARP
    shared = program.dynamic_offset + config.dynamic_shared + 1
    pieces = max(1, 16 // program.grain)
    cluster = math.prod(config.cluster)
    per_byte = 2 * pieces
    if program.by_warps:  # each piece has the clocks of all agents that may have read it
        per_byte = 2 + (24 + 12 * cluster * padded // WARP) // program.grain
    own = 8 * program.slots + 12 * program.local_bytes  # with what is known of each piece
    blocks = min(_THREADS // padded, _SHARED_BYTES // (shared * per_byte), _OWN_BYTES // (own * padded + 1))
    return max(1, blocks // cluster) * cluster
