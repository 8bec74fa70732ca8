"""What a graph's arithmetic needs at best: its products on tensor cores, where they can keep the precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutesmith_agent.estimate import CORES, FLOPS_A_CLOCK, MEMORY, Estimate, estimate
from cutesmith_agent.recipes.affine import averaged
from cutesmith_agent.recipes.geometry import output_spec
from cutesmith_agent.recipes.pooled import pooled
from cutesmith_agent.refine.kinds import kinds
from cutesmith_evaluator.types import Graph, Node, Profile, Ref
from cutesmith_evaluator.units import count

# fp16 operations of a multiprocessor's tensor cores, dense, of NVIDIA's datasheets and white papers.
TENSOR_FLOPS_A_CLOCK = {"sm_80": 2048, "sm_86": 1024, "sm_89": 1024, "sm_90a": 4096}
SPLIT = 3  # products of fp16 parts for one in fp32
_ON_TENSOR_CORES = {"matmul", "conv", "attention"}
_WIDE = {"float32", "float64"}


@dataclass(frozen=True)
class Arithmetic:
    """The most operations a second, and of what."""

    flops_per_s: float
    basis: str


def fastest(graph: Graph, arch: str) -> Arithmetic | None:
    """For the graph's operations on a device of that arch; None where it is not known.

    A bound for all operations of a graph with products, of which only these run on tensor cores.
    """
    cores, memory = CORES.get(arch), MEMORY.get(arch)
    if cores is None or memory is None:
        return None
    clocks = cores.multiprocessors * cores.hertz
    if _ON_TENSOR_CORES.isdisjoint(kinds(graph)):
        return Arithmetic(clocks * FLOPS_A_CLOCK, f"the arithmetic of {memory.device} in fp32")
    tensor = clocks * TENSOR_FLOPS_A_CLOCK[arch]
    if any(each.spec.dtype in _WIDE for each in graph.inputs):
        return Arithmetic(tensor / SPLIT, f"{memory.device}'s tensor cores, {SPLIT} fp16 products for one in fp32")
    return Arithmetic(tensor, f"{memory.device}'s tensor cores")


def operations(graph: Graph) -> int:
    """Those that the graph counts, without convolutions of which only averages are needed: there are ways around."""
    spared = {found.node.name: found.node for found in (*averaged(graph), *pooled(graph))}
    return max(graph.flops - sum(_of_convolution(graph, node) for node in spared.values()), 0)


def _of_convolution(graph: Graph, node: Node) -> int:
    """As an inspection counts them."""
    weight = node.args[1]
    assert isinstance(weight, Ref)
    return 2 * math.prod(node.outputs[0].shape) * math.prod(output_spec(graph, weight).shape[1:])


def least(graph: Graph, arch: str, profile: Profile | None = None) -> Estimate | None:
    """The time that a graph takes at best: the longest that memory, the counts of a profile and arithmetic need."""
    moving, rate = estimate(graph.bytes, arch, profile), fastest(graph, arch)
    needed = operations(graph)
    if moving is None or rate is None or needed / rate.flops_per_s * 1e3 <= moving.ms:
        return moving
    return Estimate(needed / rate.flops_per_s * 1e3, f"an estimate: {count(needed)} operations, {rate.basis}")
