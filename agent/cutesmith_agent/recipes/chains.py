"""Graphs that one kernel cannot compute, cut into graphs that one can: kernels that run one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cutesmith_evaluator.types import Graph, GraphInput, Ref, TensorSpec

from .affine import refs
from .attention_graph import without_sdpa
from .contract import Target, Unsupported
from .kernels import Kernel, convolution_kernels, kernels_of, kernels_of_sums
from .library import Call
from .space import stored_strides
from .space_sums import space_sum_of
from .steps import step_of

MOST_NODES = 48  # of a graph: each place is tried for a cut
MOST_CHAINS = 8  # of which one is measured to be the fastest
MOST_KERNELS = 4

Chain = tuple[tuple[Call, ...], Kernel]  # the earlier kernels' calls, and the last kernel
Step = tuple[GraphInput | None, tuple[Kernel, ...]]  # what later ones read of it, None for the last; its kernels


def chains_of(graph: Graph, target: Target, name: str) -> Iterator[Chain]:
    """Best guess first. Raises Unsupported where no cut helps."""
    steps = cut(without_sdpa(graph), target, name)
    if steps is None:
        raise Unsupported("no recipe covers the graph in parts")
    yield from chains(steps)


def chains_of_convolutions(graph: Graph, target: Target, name: str) -> Iterator[Chain]:
    """Best guess first: those whose first kernel computes the convolution; none where no kernel can."""
    steps = convolving_steps(graph, target, name)
    yield from chains(steps) if steps else ()


def convolving_steps(
    graph: Graph, target: Target, name: str, first: int = 1, most: int = MOST_KERNELS
) -> list[Step] | None:
    """Steps of which the first computes the convolution; their numbers in the file are from `first` to `most`."""
    if len(graph.nodes) > MOST_NODES:
        return None
    for at in range(len(graph.nodes) - 1, 0, -1):
        live = live_at(graph, at)
        heads = convolution_kernels(head(graph, at, live), target, f"{name}_{first}") if live else ()
        if live and heads:
            after = steps_of(tail(graph, at, live), target, name, first + 1, most)
            return [(live, heads), *after] if after else None
    return None


def chains_of_sums(graph: Graph, target: Target, name: str) -> Iterator[Chain]:
    """Best guess first: those whose first kernel also adds up the convolution's results over each tile's positions."""
    found = space_sum_of(graph)
    live = None if found is None else live_at(graph, found.at + 1)
    if found is None or live is None or live.name != found.node.name:
        return
    summing = replace(head(graph, found.at, found.sums(1)), outputs=(found.summed,))
    for sums, kernel in kernels_of_sums(found, summing, target, f"{name}_1"):
        after = steps_of(found.rest(sums.spec.shape[2]), target, name, 2)
        if after:
            yield next(chains([(sums, (kernel,)), *after]))


def chains(steps: list[Step]) -> Iterator[Chain]:
    kernels = [_in_turn(found) for _, found in steps]
    for picks in _picks([len(found) for found in kernels]):
        chosen = [found[pick] for found, pick in zip(kernels, picks, strict=True)]
        earlier: tuple[Call, ...] = ()
        for number, ((live, _), kernel) in enumerate(zip(steps[:-1], chosen[:-1], strict=True), 1):
            assert live is not None
            earlier = (*earlier, step_of(kernel, live, number))
        yield earlier, chosen[-1]


def steps_of(graph: Graph, target: Target, name: str, first: int = 1, most: int = MOST_KERNELS) -> list[Step] | None:
    """One kernel where that is enough, else several, of the numbers from `first` to `most` in the file."""
    last = _kernels(graph, target, name)
    return [(None, last)] if last else cut(graph, target, name, first, most)


def cut(graph: Graph, target: Target, name: str, first: int = 1, most: int = MOST_KERNELS) -> list[Step] | None:
    """The steps of a chain: each is as long as a kernel can make it."""
    if first >= most or len(graph.nodes) > MOST_NODES:
        return None
    for at in range(len(graph.nodes) - 1, 0, -1):
        live = live_at(graph, at)
        kernels = _kernels(head(graph, at, live), target, f"{name}_{first}") if live else ()
        after = steps_of(tail(graph, at, live), target, name, first + 1, most) if live and kernels else None
        if after is not None:
            return [(live, kernels), *after]
    return None


def _kernels(graph: Graph, target: Target, name: str) -> tuple[Kernel, ...]:
    try:
        return kernels_of(graph, target, name, alone=True)
    except Unsupported:
        return ()


def live_at(graph: Graph, at: int) -> GraphInput | None:
    """The only value that the nodes from `at` on read of those before."""
    made = {node.name: node for node in graph.nodes[:at]}
    later = [ref for node in graph.nodes[at:] for ref in refs(node)] + list(graph.outputs)
    read = {(ref.name, ref.index) for ref in later if ref.name in made}
    if len(read) != 1:
        return None
    name, index = next(iter(read))
    spec = made[name].outputs[index]
    if index or spec.dtype not in ("float32", "float16", "bfloat16"):
        return None
    return GraphInput(name, "constant", TensorSpec(spec.shape, spec.dtype, stored_strides(spec)))


def head(graph: Graph, at: int, live: GraphInput) -> Graph:
    outputs = (Ref(live.name, 0),)
    return replace(graph, nodes=graph.nodes[:at], outputs=outputs, returns_tuple=False, dynamic_dims=())


def tail(graph: Graph, at: int, live: GraphInput) -> Graph:
    return replace(graph, inputs=(*graph.inputs, live), nodes=graph.nodes[at:], dynamic_dims=())


def _in_turn(kernels: tuple[Kernel, ...]) -> list[Kernel]:
    """Those whose convolutions run on channels-last tensors in turn with the others."""
    last = [k for k in kernels if any(call.memory_format for call in k.calls)]
    plain = [k for k in kernels if not any(call.memory_format for call in k.calls)]
    pairs = [k for pair in zip(plain, last, strict=False) for k in pair]
    shorter = min(len(plain), len(last))
    return [*pairs, *plain[shorter:], *last[shorter:]]


def _picks(sizes: list[int]) -> list[tuple[int, ...]]:
    """Which kernel of each step: the best guesses, then those with one other in one place."""
    first = tuple(0 for _ in sizes)
    others = [
        (*first[:step], pick, *first[step + 1 :])
        for pick in range(1, MOST_CHAINS)
        for step, size in enumerate(sizes)
        if pick < size
    ]
    return [first, *others][:MOST_CHAINS]
