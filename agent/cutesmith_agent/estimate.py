"""How long a kernel would take at best: an estimate where nothing was measured, and labelled as one."""

from __future__ import annotations

from dataclasses import dataclass

from cutesmith_evaluator.types import Profile


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
    basis = f"an estimate: {moved_bytes / 1e6:.1f} MB at {speed}"
    limits = [Estimate(moved_bytes / memory.bytes_per_s * 1e3, basis)]
    cores = CORES.get(arch)
    if profile is not None and profile.bytes and cores is not None:
        limits += _of_counts(profile, moved_bytes / profile.bytes, cores)
    return max(limits, key=lambda limit: limit.ms)


def _of_counts(profile: Profile, share: float, cores: Cores) -> list[Estimate]:
    clocks = cores.multiprocessors * cores.hertz
    sums = {
        "thread-level instructions": (sum(each.instructions for each in profile.kernels), _ISSUED),
        "sectors of global memory": (sum(each.sectors for each in profile.kernels), _SECTORS),
        "passes of shared memory": (sum(each.shared_passes for each in profile.kernels), 1),
    }
    where = f"{cores.multiprocessors} multiprocessors at {cores.hertz / 1e9:.2f} GHz"
    return [
        Estimate(
            share * number / (rate * clocks) * 1e3,
            f"an estimate: {share * number / 1e6:.1f} million {what}, {rate} a clock on {where}",
        )
        for what, (number, rate) in sums.items()
    ]
