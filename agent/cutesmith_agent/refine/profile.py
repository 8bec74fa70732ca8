"""The profiler's figures of a kernel as the model is shown them, late, and what they signal by fixed rules."""

from __future__ import annotations

from collections.abc import Iterator

from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate, Category, Graph, KernelMeasures, Profile, Resources

_ROUNDS: dict[Category, int] = {"pointwise": 2, "loss": 3, "matmul": 6, "attention": 6, "conv": 6, "mixed": 6}
_OTHERWISE = 5  # reductions, normalisations, softmax, scans, pooling
_REGISTERS_PER_SM = 65_536
_MAX_THREADS = 2_048  # per multiprocessor


def rounds_before(category: Category) -> int:
    """Rounds of optimisation before the profiler's figures are shown: structure comes first, and where a kernel's
    structure takes longer to find, they wait longer."""
    return _ROUNDS.get(category, _OTHERWISE)


def figures(candidate: Candidate, graph: Graph, arch: str) -> str:
    """Time, bandwidth, arithmetic, registers, shared memory and spills of a timed candidate, a line each."""
    return "\n".join(f"- {line}" for line in _lines(candidate, graph, arch))


def _lines(candidate: Candidate, graph: Graph, arch: str) -> Iterator[str]:
    timing = candidate.timing
    ms = median_ms(timing) if timing else None
    if timing is not None and ms:
        moved = graph.bytes / ms / 1e6
        yield f"{ms:.4g} ms on {timing.device}; the fewest bytes of the task at {moved:,.0f} GB/s"
        yield f"that is {timing.fraction_of_copy:.0%} of a copy's bandwidth ({timing.copy_gbps:,.0f} GB/s, same run)"
        yield f"{graph.flops / ms / 1e9:,.2f} TFLOP/s by the graph's count of operations"
        yield _signal(timing.fraction_of_copy)
    for used in candidate.resources:
        if used.arch == arch:
            yield from _resources(used)
    if candidate.profile is not None:
        yield from _profile(candidate.profile)


def _profile(profile: Profile) -> Iterator[str]:
    if (place := profile.roofline) is not None and place.ridge is not None:
        yield f"{place.intensity:.3g} operations a byte; from {place.ridge:.3g} on fp32 arithmetic would bound the task"
    for kernel in profile.measured:
        yield from _measures(kernel)
    if profile.limiter is not None:
        yield f"what limits it most: {profile.limiter}"
    for hint in profile.hints:
        yield f"hint{f' (line {hint.line})' if hint.line else ''}: {hint.message}"


def _measures(kernel: KernelMeasures) -> Iterator[str]:
    """Nsight Compute's figures; those that it did not give are left out."""
    shares = (
        ("memory", kernel.dram_share),
        ("level 2", kernel.l2_share),
        ("level 1", kernel.l1_share),
        ("the busiest unit of the multiprocessors", kernel.sm_share),
        ("warps active", kernel.occupancy),
    )
    told = ", ".join(f"{what} {share:.0%}" for what, share in shares if share is not None)
    yield f"{kernel.kernel}, Nsight Compute: {kernel.us:.4g} µs in {kernel.launches} launches; of their peaks: {told}"
    if kernel.stalls:
        worst = ", ".join(f"{why} {ratio:.1f}" for why, ratio in kernel.stalls[:3])
        yield f"{kernel.kernel}: warps that wait for each that issues, by reason: {worst}"


def _signal(fraction: float) -> str:
    if fraction >= 0.7:
        return "signal: memory-bound, near what a copy reaches; only fewer bytes would help much"
    if fraction <= 0.3:
        return "signal: far from memory-bound; latency, instructions or too few blocks limit it, or bytes move twice"
    return "signal: partly memory-bound; look for accesses that are narrow, repeated or not overlapped"


def _resources(used: Resources) -> Iterator[str]:
    registers, shared = used.registers, used.shared_bytes
    yield f"{used.kernel}: {registers} registers a thread, {shared:,} bytes of static shared memory"
    if registers:
        threads = min(_MAX_THREADS, _REGISTERS_PER_SM // registers // 32 * 32)
        yield f"{used.kernel}: registers allow {threads} of {_MAX_THREADS} threads a multiprocessor"
    if used.spill_bytes:
        yield f"{used.kernel}: signal: {used.spill_bytes} bytes of registers are spilled to memory; shorten live ranges"
