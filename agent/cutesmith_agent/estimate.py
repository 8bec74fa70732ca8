"""How long a kernel would take at best: an estimate where nothing was measured, and labelled as one."""

from __future__ import annotations

from dataclasses import dataclass

from cutesmith_evaluator.types import Limiter, Profile
from cutesmith_evaluator.units import amount, count


@dataclass(frozen=True)
class Memory:
    """A device's memory. `source`: where the bandwidth is from."""

    device: str
    bytes_per_s: float
    source: str


@dataclass(frozen=True)
class Cores:
    """Multiprocessors and their boost clock, of NVIDIA's datasheets and white papers."""

    multiprocessors: int
    hertz: float


_DATASHEET = "peak, NVIDIA's datasheet"
MEMORY = {
    "sm_80": Memory("A100 80GB SXM", 2.039e12, _DATASHEET),
    "sm_86": Memory("A10", 0.6e12, _DATASHEET),
    "sm_89": Memory("L40S", 0.864e12, _DATASHEET),
    "sm_90a": Memory("H200", 4.2e12, "device-to-device copy, measured"),
    "sm_100a": Memory("B200", 8.0e12, _DATASHEET),
    "sm_120a": Memory("RTX 5090", 1.792e12, _DATASHEET),
}
CORES = {
    "sm_80": Cores(108, 1.41e9),
    "sm_86": Cores(72, 1.695e9),
    "sm_89": Cores(142, 2.52e9),
    "sm_90a": Cores(132, 1.98e9),
}
FLOPS_A_CLOCK = 2 * 128  # fp32, of a multiprocessor
_ISSUED = 4 * 32  # thread-level instructions that a multiprocessor issues in a clock
_SECTORS = 2  # 32-byte sectors that a multiprocessor gets from the level 2 cache in a clock


@dataclass(frozen=True)
class Estimate:
    """Milliseconds, and how they came about in words."""

    ms: float
    basis: str


def estimate(moved_bytes: int, arch: str, profile: Profile | None = None) -> Estimate | None:
    """The time to move the fewest bytes of a task once; None for an arch whose memory is not known.

    With the emulated device's counts: what takes longest of that, the instructions, the sectors that go to and from
    the multiprocessors, and the passes of shared memory. The counts grow with the bytes of the task.
    """
    memory = MEMORY.get(arch)
    if memory is None:
        return None
    speed = f"{memory.bytes_per_s / 1e12:.1f} TB/s ({memory.device}, {memory.source})"
    basis = f"an estimate: {amount(moved_bytes)} at {speed}"
    limits = [Estimate(moved_bytes / memory.bytes_per_s * 1e3, basis)]
    if profile is not None:
        limits += [need.estimate() for need in _needs(moved_bytes, arch, profile)]
    return max(limits, key=lambda limit: limit.ms)


def demands(moved_bytes: int, arch: str, profile: Profile) -> dict[Limiter, float]:
    """Milliseconds by what has to serve a task at its best rate: its memory, and what the counts ask for."""
    memory = MEMORY.get(arch)
    if memory is None:
        return {}
    times: dict[Limiter, float] = {"memory": moved_bytes / memory.bytes_per_s * 1e3}
    times.update((need.limiter, need.estimate().ms) for need in _needs(moved_bytes, arch, profile))
    return times


@dataclass(frozen=True)
class _Need:
    """So many of something, of which each multiprocessor does `rate` in a clock."""

    limiter: Limiter
    what: str
    number: float
    rate: int
    cores: Cores

    def estimate(self) -> Estimate:
        clocks = self.cores.multiprocessors * self.cores.hertz
        where = f"{self.cores.multiprocessors} multiprocessors at {self.cores.hertz / 1e9:.2f} GHz"
        basis = f"an estimate: {count(self.number)} {self.what}, {self.rate} a clock on {where}"
        return Estimate(self.number / (self.rate * clocks) * 1e3, basis)


def _needs(moved_bytes: int, arch: str, profile: Profile) -> list[_Need]:
    """The counts, grown with the bytes of the task."""
    cores = CORES.get(arch)
    if cores is None or not profile.bytes or not profile.kernels:
        return []
    share = moved_bytes / profile.bytes
    instructions = share * sum(each.instructions for each in profile.kernels)
    sectors = share * sum(each.sectors for each in profile.kernels)
    passes = share * sum(each.shared_passes for each in profile.kernels)
    return [
        _Need("instructions", "thread-level instructions", instructions, _ISSUED, cores),
        _Need("caches", "sectors of global memory", sectors, _SECTORS, cores),
        _Need("shared memory", "passes of shared memory", passes, 1, cores),
    ]
