"""A candidate's profile with all that follows from it: its place under the roofline, its limiter, its hints."""

from __future__ import annotations

from dataclasses import replace

from cutesmith_agent.arithmetic import fastest, operations
from cutesmith_agent.estimate import MEMORY
from cutesmith_agent.profiling.facts import Facts
from cutesmith_agent.profiling.hints import hints
from cutesmith_agent.profiling.limiter import limiter
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate, Graph, Profile, Roofline


def analysed(candidate: Candidate, graph: Graph, arch: str, source: str) -> Candidate:
    """The candidate with its profile's roofline, limiter and hints. `source`: of the candidate, for lines."""
    profile = candidate.profile or Profile(arch, graph.bytes, ())
    place = roofline(candidate, graph, arch)
    facts = Facts(profile, candidate.resources, candidate.timing, graph, arch, source)
    found = limiter(facts)
    return replace(
        candidate, profile=replace(profile, roofline=place, limiter=found, hints=hints(replace(facts, limiter=found)))
    )


def roofline(candidate: Candidate, graph: Graph, arch: str) -> Roofline | None:
    """By the copy's bandwidth where one was measured beside the candidate, else by the arch's; None: neither known.

    By the arithmetic, where that takes longer.
    """
    memory, timing = MEMORY.get(arch), candidate.timing
    is_timed = timing is not None and timing.copy_gbps > 0
    if not graph.bytes or not (is_timed or memory):
        return None
    if timing is not None and is_timed:
        bandwidth, basis = timing.copy_gbps * 1e9, f"a copy on {timing.device} in the same run"
    else:
        assert memory is not None
        bandwidth, basis = memory.bytes_per_s, f"the bandwidth of {memory.device} ({memory.source})"
    rate = fastest(graph, arch)
    needed = operations(graph)
    floor_s, ridge = graph.bytes / bandwidth, rate.flops_per_s / bandwidth if rate else None
    if rate is not None and needed / rate.flops_per_s > floor_s:
        floor_s, basis = needed / rate.flops_per_s, rate.basis
    ms = median_ms(timing) if timing else None
    reached = floor_s * 1e3 / ms if ms else None
    return Roofline(needed / graph.bytes, ridge, floor_s * 1e3, reached, basis)
