"""A convolution whose results are only read through average pools: one convolution of a larger stride.

A pool's windows lie inside the results, and each result is a sum of the input times elements of the kernel. So a mean
of neighbouring results is a sum of the input times sums of neighbouring elements: exact but for rounding.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref, TensorSpec

from .affine import CONVOLUTION, FIRST, is_affine, is_same, refs
from .ir import Builder, Expr
from .lowering import Program, Store
from .place_sums import Stage, part_graph, result_of
from .pools import plain_means
from .space import contiguous
from .views import integers

MOST_ELEMENTS = 64  # of the new kernel: one store each
Weights = dict[int, Counter[int]]  # by element of the new kernel: elements of the old one, and how many times each


@dataclass(frozen=True)
class Window:
    """Results stride * o + place, for each of `places`, are those of window o, along one dimension."""

    stride: int
    places: tuple[int, ...]

    def of(self, size: int, stride: int) -> Window:
        """A pool of what comes of these windows."""
        places = tuple(self.stride * k + place for k in range(size) for place in self.places)
        return Window(self.stride * stride, places)


@dataclass(frozen=True)
class Pooled:
    """`between`: nodes between the convolution and the last pool, pools included."""

    node: Node
    between: tuple[Node, ...]
    last: Node
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Along:
    """One dimension of the new convolution, which is a forward one."""

    stride: int
    padding: int
    dilation: int
    size: int  # elements
    weights: Weights


def pooled(graph: Graph) -> Iterator[Pooled]:
    """Every convolution of the graph of which only averages of windows are needed."""
    for node in graph.nodes:
        found = _followed(graph, node) if node.op == CONVOLUTION else None
        if found is not None:
            yield found


def _followed(graph: Graph, node: Node) -> Pooled | None:
    """As far as one value is read by one affine step or pool after the other."""
    values, steps, read = {node.name}, [], node
    windows = tuple(Window(1, (0,)) for _ in node.outputs[0].shape[FIRST:])
    found = None
    while True:
        readers = [later for later in graph.nodes if any(ref.name == read.name for ref in refs(later))]
        if len(readers) != 1 or any(ref.name == read.name for ref in graph.outputs):
            return found
        (later,) = readers
        pool = plain_means(later) if len(later.outputs[0].shape) == len(windows) + FIRST else None
        if pool is not None:
            windows = tuple(own.of(*each) for own, each in zip(windows, pool, strict=True))
        elif not is_affine(graph, later, values) or not is_same(graph, later, values):
            return found
        steps.append(later)
        values.add(later.name)
        read = later
        if pool is not None:
            found = Pooled(node, tuple(steps), later, windows)


def along_of(found: Pooled, size: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[Along, ...] | None:
    """The new convolution, where it is smaller; `size`: of the input, `kernel`: of the old one."""
    stride, padding, dilation = (integers(found.node.args[k]) for k in (3, 4, 5))
    results = found.last.outputs[0].shape[FIRST:]
    dims = zip(found.windows, size, kernel, stride, padding, dilation, results, strict=True)
    transposed = bool(found.node.args[6])
    made = [_scattered(*each) if transposed else _forward(*each[:1], *each[2:6]) for each in dims]
    along = [each for each in made if each is not None]
    if len(along) < len(made) or math.prod(each.size for each in along) > MOST_ELEMENTS:
        return None
    positions = math.prod(size if transposed else found.node.outputs[0].shape[FIRST:])
    less = math.prod(results) * math.prod(each.size for each in along) < positions * math.prod(kernel)
    return tuple(along) if less else None


def _forward(window: Window, kernel: int, stride: int, padding: int, dilation: int) -> Along:
    """Result o has element t of place stride * o - padding + dilation * t: a window, those of all its results."""
    by_place: Weights = {}
    for place, t in itertools.product(window.places, range(kernel)):
        by_place.setdefault(stride * place + dilation * t, Counter())[t] += 1
    step = math.gcd(*by_place) or 1
    weights = {place // step: taps for place, taps in by_place.items()}
    return Along(stride * window.stride, padding, step, 1 + max(weights), weights)


def _scattered(
    window: Window, size: int, kernel: int, stride: int, padding: int, dilation: int, results: int
) -> Along | None:
    """Result o has element t of place i where o + padding = stride * i + dilation * t; a window's results are whole
    strides from the next one's, so that its places are, too."""
    if window.stride % stride:
        return None
    by_place: Weights = {}
    for place, t in itertools.product(window.places, range(kernel)):
        i, rest = divmod(place + padding - dilation * t, stride)
        if not rest:
            by_place.setdefault(i, Counter())[t] += 1
    step = window.stride // stride
    before = max(-min(by_place), 0)
    while True:  # elements of zeros, where the results would otherwise be more or fewer
        most = size + 2 * before - step * (results - 1)
        needed = 1 + before + max(by_place)
        if needed <= most:
            break
        before += 1
    weights = {before + i: taps for i, taps in by_place.items()}
    return Along(step, before, 1, max(needed, most - step + 1), weights)


def weight_stage(found: Pooled, weight: GraphInput, along: tuple[Along, ...], name: str) -> Stage:
    """The kernel that makes the new weight: (results' channels, channels of a group, elements)."""
    transposed, (groups,) = bool(found.node.args[6]), integers(found.node.args[8])
    shape, taps = weight.spec.shape, math.prod(weight.spec.shape[FIRST:])
    outer, inner = (shape[1], shape[0] // groups) if transposed else (shape[0] // groups, shape[1])
    channels = (inner * outer, 1, outer) if transposed else (outer * inner, inner, 1)
    b = Builder(frozenset(range(3)))
    first = b.load(weight.name, weight.spec.dtype, tuple(each * taps for each in channels), 0)
    scale = b.const(1 / math.prod(len(window.places) for window in found.windows))
    count = math.prod(each.size for each in along)
    stores = []
    for number, place in enumerate(itertools.product(*(range(each.size) for each in along))):
        value: Expr | None = None
        for at, times in _elements(along, place, shape[FIRST:]):
            term = b.op("mul", b.load(weight.name, weight.spec.dtype, first.strides, at), b.const(times))
            value = term if value is None else b.op("add", value, term)
        value = b.op("mul", value, scale) if value is not None else _zero(b, first)
        strides = tuple(each * count for each in (outer * inner, inner, 1))
        stores.append(Store(0, value, strides, number, per_column=True))
    result = result_of(name, (groups * outer, inner, *(each.size for each in along)))
    dims = ((0,), (1,), (2,))
    return Program(part_graph(weight, result), (groups, outer, inner), 0, dims, tuple(stores)), result


def _elements(along: tuple[Along, ...], place: tuple[int, ...], kernel: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Where the elements lie that are added up for one of the new kernel, and how many times each."""
    taken = [each.weights.get(k, Counter[int]()) for each, k in zip(along, place, strict=True)]
    steps = contiguous(kernel)
    for element in itertools.product(*taken):
        at = sum(t * step for t, step in zip(element, steps, strict=True))
        yield at, math.prod(taps[t] for t, taps in zip(element, taken, strict=True))


def _zero(b: Builder, load: Expr) -> Expr:
    """A kernel writes what it computes of a tensor."""
    return b.op("where", b.op("lt", load, b.const(0.0)), b.const(0.0), b.const(0.0))


def rest_graph(found: Pooled, graph: Graph, along: tuple[Along, ...], weight: GraphInput) -> Graph:
    """The graph with the new convolution and without the pools."""
    node, positions = found.node, found.last.outputs[0].shape[FIRST:]
    args = (node.args[0], Ref(weight.name), node.args[2], *_geometry(along), False, (0,) * len(along), node.args[8])
    nodes = []
    for each in graph.nodes:
        if each is not node and each not in found.between:
            nodes.append(each)
            continue
        spec = each.outputs[0]
        shape = (*spec.shape[:FIRST], *positions)
        made = replace(each, outputs=(TensorSpec(shape, spec.dtype, contiguous(shape)), *each.outputs[1:]))
        if each is node:
            made = replace(made, args=args)
        elif plain_means(each) is not None:
            made = replace(made, op="aten.view.default", args=(each.args[0], shape), kwargs={})
        nodes.append(made)
    return replace(graph, inputs=(*graph.inputs, weight), nodes=tuple(nodes), dynamic_dims=())


def _geometry(along: tuple[Along, ...]) -> tuple[tuple[int, ...], ...]:
    """Strides, paddings and dilations."""
    return (
        tuple(each.stride for each in along),
        tuple(each.padding for each in along),
        tuple(each.dilation for each in along),
    )
