"""A candidate's profile with all that follows from it: its place under the roofline, its limiter, its hints."""

from __future__ import annotations

from dataclasses import replace

from cutesmith_agent.estimate import CORES, FLOPS_A_CLOCK, MEMORY
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
    """By the copy's bandwidth where one was measured beside the candidate, else by the arch's; None: neither known."""
    memory, cores, timing = MEMORY.get(arch), CORES.get(arch), candidate.timing
    is_timed = timing is not None and timing.copy_gbps > 0
    if not graph.bytes or not (is_timed or memory):
        return None
    if timing is not None and is_timed:
        bandwidth, basis = timing.copy_gbps * 1e9, f"a copy on {timing.device} in the same run"
    else:
        assert memory is not None
        bandwidth, basis = memory.bytes_per_s, f"{memory.device}, {memory.source}"
    flops = cores.multiprocessors * cores.hertz * FLOPS_A_CLOCK if cores else None
    floor_s = max(graph.bytes / bandwidth, graph.flops / flops if flops else 0.0)
    ms = median_ms(timing) if timing else None
    reached = floor_s * 1e3 / ms if ms else None
    return Roofline(graph.flops / graph.bytes, flops / bandwidth if flops else None, floor_s * 1e3, reached, basis)
