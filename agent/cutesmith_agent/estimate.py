"""How long a memory-bound kernel would take at best: an estimate where nothing was measured, and labelled as one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """A device's memory. `source`: where the bandwidth is from."""

    device: str
    bytes_per_s: float
    source: str


_DATASHEET = "peak, NVIDIA's datasheet"
MEMORY = {
    "sm_80": Memory("A100 80GB SXM", 2.039e12, _DATASHEET),
    "sm_86": Memory("A10", 0.6e12, _DATASHEET),
    "sm_89": Memory("L40S", 0.864e12, _DATASHEET),
    "sm_90a": Memory("H200", 4.2e12, "device-to-device copy, measured"),
    "sm_100a": Memory("B200", 8.0e12, _DATASHEET),
    "sm_120a": Memory("RTX 5090", 1.792e12, _DATASHEET),
}


@dataclass(frozen=True)
class Estimate:
    """Milliseconds, and how they came about in words."""

    ms: float
    basis: str


def estimate(moved_bytes: int, arch: str) -> Estimate | None:
    """The time to move the fewest bytes of a task once; None for an arch whose memory is not known."""
    memory = MEMORY.get(arch)
    if memory is None:
        return None
    ms = moved_bytes / memory.bytes_per_s * 1e3
    speed = f"{memory.bytes_per_s / 1e12:.1f} TB/s ({memory.device}, {memory.source})"
    basis = f"an estimate: {moved_bytes / 1e6:.1f} MB at {speed}"
    return Estimate(ms, basis)
