"""Graphs that one kernel cannot compute, cut into graphs that one can: kernels that run one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref, TensorSpec

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
    steps = _cut(without_sdpa(graph), target, name, MOST_KERNELS)
    if steps is None:
        raise Unsupported("no recipe covers the graph in parts")
    yield from _chains(steps)


def chains_of_convolutions(graph: Graph, target: Target, name: str) -> Iterator[Chain]:
    """Best guess first: those whose first kernel computes the convolution; none where no kernel can."""
    if len(graph.nodes) > MOST_NODES:
        return
    for at in range(len(graph.nodes) - 1, 0, -1):
        live = _live(graph, at)
        heads = convolution_kernels(_head(graph, at, live), target, f"{name}_1") if live else ()
        if live and heads:
            rest = _tail(graph, at, live)
            last = _kernels(rest, target, name)
            after = [(None, last)] if last else _cut(rest, target, name, MOST_KERNELS - 1)
            yield from _chains([(live, heads), *after]) if after else ()
            return


def chains_of_sums(graph: Graph, target: Target, name: str) -> Iterator[Chain]:
    """Best guess first: those whose first kernel also adds up the convolution's results over each tile's positions."""
    found = space_sum_of(graph)
    if found is None:
        return
    head = replace(_head(graph, found.at, found.sums(1)), outputs=(found.summed,))
    for sums, kernel in kernels_of_sums(found, head, target, f"{name}_1"):
        rest = found.rest(sums.spec.shape[2])
        last = _kernels(rest, target, name)
        after = [(None, last)] if last else _cut(rest, target, name, MOST_KERNELS - 1)
        if after:
            yield next(_chains([(sums, (kernel,)), *after]))


def _chains(steps: list[Step]) -> Iterator[Chain]:
    kernels = [_in_turn(found) for _, found in steps]
    for picks in _picks([len(found) for found in kernels]):
        chosen = [found[pick] for found, pick in zip(kernels, picks, strict=True)]
        earlier: tuple[Call, ...] = ()
        for number, ((live, _), kernel) in enumerate(zip(steps[:-1], chosen[:-1], strict=True), 1):
            assert live is not None
            earlier = (*earlier, step_of(kernel, live, number))
        yield earlier, chosen[-1]


def _cut(graph: Graph, target: Target, name: str, most: int) -> list[Step] | None:
    """The steps of a chain: each is as long as a kernel can make it."""
    if most < 2 or len(graph.nodes) > MOST_NODES:
        return None
    for at in range(len(graph.nodes) - 1, 0, -1):
        live = _live(graph, at)
        kernels = _kernels(_head(graph, at, live), target, f"{name}_{MOST_KERNELS - most + 1}") if live else ()
        if live is None or not kernels:
            continue
        rest = _tail(graph, at, live)
        last = _kernels(rest, target, name)
        after = [(None, last)] if last else _cut(rest, target, name, most - 1)
        if after is not None:
            return [(live, kernels), *after]
    return None


def _kernels(graph: Graph, target: Target, name: str) -> tuple[Kernel, ...]:
    try:
        return kernels_of(graph, target, name, alone=True)
    except Unsupported:
        return ()


def _live(graph: Graph, at: int) -> GraphInput | None:
    """The only value that the nodes from `at` on read of those before."""
    made = {node.name: node for node in graph.nodes[:at]}
    later = [ref for node in graph.nodes[at:] for ref in _refs(node)] + list(graph.outputs)
    read = {(ref.name, ref.index) for ref in later if ref.name in made}
    if len(read) != 1:
        return None
    name, index = next(iter(read))
    spec = made[name].outputs[index]
    if index or spec.dtype not in ("float32", "float16", "bfloat16"):
        return None
    return GraphInput(name, "constant", TensorSpec(spec.shape, spec.dtype, stored_strides(spec)))


def _refs(node: Node) -> Iterator[Ref]:
    waiting: list[object] = [*node.args, *node.kwargs.values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Ref):
            yield value
        elif isinstance(value, tuple | list):
            waiting += value


def _head(graph: Graph, at: int, live: GraphInput) -> Graph:
    outputs = (Ref(live.name, 0),)
    return replace(graph, nodes=graph.nodes[:at], outputs=outputs, returns_tuple=False, dynamic_dims=())


def _tail(graph: Graph, at: int, live: GraphInput) -> Graph:
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
