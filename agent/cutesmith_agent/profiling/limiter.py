"""What takes longest in a kernel."""

from __future__ import annotations

from cutesmith_agent.estimate import demands
from cutesmith_agent.profiling.facts import Facts
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import KernelMeasures, Limiter

BUSY = 0.7  # of a unit's peak: it is what limits


def limiter(facts: Facts) -> Limiter | None:
    """By Nsight Compute where it measured, else by the longest demand of the counts beside the time, else by the
    share of a copy's bandwidth. None: nothing tells."""
    if facts.profile.measured:
        return _measured(max(facts.profile.measured, key=lambda kernel: kernel.us))
    if facts.profile.kernels:
        return _counted(facts)
    if facts.timing is not None:
        return "memory" if facts.timing.fraction_of_copy >= BUSY else "latency"
    return None


def _measured(kernel: KernelMeasures) -> Limiter:
    shares: dict[Limiter, float] = {
        "memory": kernel.dram_share or 0.0,
        "caches": max(kernel.l1_share or 0.0, kernel.l2_share or 0.0),
        "instructions": kernel.sm_share or 0.0,
    }
    busiest = max(shares, key=lambda name: shares[name])
    return busiest if shares[busiest] >= BUSY else "latency"


def _counted(facts: Facts) -> Limiter | None:
    """The longest of what the counts demand; latency where all of it is far from the time that was measured."""
    times = demands(facts.graph.bytes, facts.arch, facts.profile)
    if not times:
        return None
    longest = max(times, key=lambda name: times[name])
    ms = median_ms(facts.timing) if facts.timing else None
    return "latency" if ms and times[longest] < BUSY * ms else longest
