"""Chains of kernels for a convolution of which only averages are needed: sums of its input, then what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from cutesmith_evaluator.types import Graph, GraphInput, Ref

from .affine import FIRST, Averaged, averaged
from .chains import Chain, Step, chains, convolving_steps, head, live_at, steps_of, tail
from .collapse import Collapse, collapse_of, input_stages, is_plain, rest_graph, weight_graph
from .contract import Target
from .kernels import Kernel, kernels_of, row_kernels
from .pooled import Pooled, along_of, pooled, weight_stage
from .pooled import rest_graph as rest_pooled
from .singles import without_singles
from .variants import variants

AFTER = 3  # kernels, at most, that follow those which take sums
LEAST_OF_TF32 = 4  # channels of an averaged convolution from which PyTorch may compute in TF32 what it did not before
FEW_PRODUCTS = 1 << 23  # up to which tensor cores gain nothing
SAYS = "means of a convolution's results from those of its input, an exact rearrangement but for rounding"
NONE, SMALLER = "no convolution is computed", "a smaller convolution is computed"


def chains_of_averages(graph: Graph, target: Target, name: str) -> Iterator[Chain]:
    """Best guess first; none where no convolution of the graph is of this kind."""
    graph = without_singles(graph)
    ways = (_steps(graph, found, target, name) for found in averaged(graph))
    pools = (_pooled_steps(graph, found, target, name) for found in pooled(graph))
    steps = next((found for found in (*ways, *pools) if found), [])
    yield from (chain for row in zip_longest(*map(chains, steps)) for chain in row if chain is not None)


def _pooled_steps(graph: Graph, found: Pooled, target: Target, name: str) -> list[list[Step]]:
    """A kernel that makes the new weight, then what the graph is with it."""
    inputs = {i.name: i for i in graph.inputs}
    x, weight = (inputs.get(ref.name) if isinstance(ref, Ref) else None for ref in found.node.args[:2])
    if x is None or weight is None or not all(is_plain(each) and each.spec.dtype == "float32" for each in (x, weight)):
        return []
    along = along_of(found, x.spec.shape[FIRST:], weight.spec.shape[FIRST:])
    if along is None:
        return []
    program, made = weight_stage(found, weight, along, f"{found.node.name}_weight")
    title = f"{target.class_name}: {SAYS}: {SMALLER}."
    several = tuple(Kernel(program, (), replace(v, title=title)) for v in variants(program, f"{name}_1", target))
    kernel = min(several, key=lambda each: each.schedule["threads"])  # the tensor is small: as many blocks as can be
    rest = rest_pooled(found, graph, along, made)
    most = 1 + AFTER
    after = (steps_of(rest, target, name, 2, most), convolving_steps(rest, target, name, 2, most))
    return [[(made, (kernel,)), *way] for way in _precise(after, x.spec.shape[1])]


def _precise(ways: Iterable[list[Step] | None], channels: int) -> Iterator[list[Step]]:
    """Those whose convolutions are computed at fp32 accuracy: an average evens out the errors of eager's results, which
    convolutions in TF32 of what was averaged did not match on an H200, PyTorch's as well as ours."""
    for way in ways:
        kept = [(live, tuple(k for k in kernels if _is_precise(k, channels))) for live, kernels in way or ()]
        if kept and all(kernels for _, kernels in kept):
            yield kept


def _is_precise(kernel: Kernel, channels: int) -> bool:
    return not kernel.variant.is_as_tf32 and (not kernel.calls or channels < LEAST_OF_TF32)


def _steps(graph: Graph, found: Averaged, target: Target, name: str) -> list[list[Step]]:
    """Ways to compute the graph."""
    before, graph, x = _before(graph, found, target, name)
    collapse = collapse_of(graph, found, x) if x is not None else None
    if collapse is None:
        return []
    steps, weight = list(before), collapse.weight
    title = f"{target.class_name}: {SAYS}: {NONE if found.is_whole else SMALLER}."
    stages = input_stages(collapse, f"{found.node.name}_means")
    for program, result in stages:
        several = variants(program, f"{name}_{len(steps) + 1}", target)
        steps.append((result, tuple(Kernel(program, (), replace(each, title=title)) for each in several)))
    making = weight_graph(collapse, graph, f"{found.node.name}_weight")
    if making is not None:
        weight = _weight(making)
        steps.append((weight, kernels_of(making, target, f"{name}_{len(steps) + 1}")[:1]))
    rest = rest_graph(collapse, graph, stages[-1][1], weight)
    return [[*steps, *after] for after in _after(collapse, rest, target, name, len(steps) + 1)]


def _before(graph: Graph, found: Averaged, target: Target, name: str) -> tuple[list[Step], Graph, GraphInput | None]:
    """Kernels that compute what the convolution reads, the rest of the graph, and that tensor."""
    given = found.node.args[0]
    assert isinstance(given, Ref)
    x = next((i for i in graph.inputs if i.name == given.name), None)
    if x is not None:
        return [], graph, x
    at = graph.nodes.index(found.node)
    live = live_at(graph, at)
    if live is None or live.name != given.name:
        return [], graph, None
    steps = steps_of(head(graph, at, live), target, f"{name}_before")
    if not steps:
        return [], graph, None
    return [*steps[:-1], (live, steps[-1][1])], tail(graph, at, live), live


def _weight(making: Graph) -> GraphInput:
    node = making.nodes[-1]
    return GraphInput(node.name, "constant", node.outputs[0])


def _after(collapse: Collapse, rest: Graph, target: Target, name: str, first: int) -> list[list[Step]]:
    most = first + AFTER - 1
    ways = [steps_of(rest, target, name, first, most)]
    if not collapse.found.is_whole:
        ways.insert(0, convolving_steps(rest, target, name, first, most))
        return list(_precise(ways, collapse.x.spec.shape[1]))
    if collapse.products <= FEW_PRODUCTS:
        ways.insert(0, _row_by_row(collapse, rest, target, name, first))
    return [way for way in ways if way]


def _row_by_row(collapse: Collapse, rest: Graph, target: Target, name: str, first: int) -> list[Step] | None:
    """The product in a kernel with as much of what follows it as that can compute."""
    last = row_kernels(rest, target, name)
    if last:
        return [(None, last)]
    summed = next(k for k, node in enumerate(rest.nodes) if node.name == collapse.node.name)
    for at in range(len(rest.nodes) - 1, summed, -1):
        live = live_at(rest, at)
        kernels = row_kernels(head(rest, at, live), target, f"{name}_{first}") if live else ()
        after = steps_of(tail(rest, at, live), target, name, first + 1, first + AFTER - 1) if live and kernels else None
        if after:
            return [(live, kernels), *after]
    return None
