"""Means of a convolution's results without the convolution: from sums of its input over places.

The mean over positions of sum(x[o - t] * w[t]) is sum(mean of x over the places that t meets * w[t]), an identity but
for rounding. The first kernels take these means of the input and read it once; what is left is a product of two small
tensors, or, where only the first dimensions of positions are averaged over, a convolution over the other dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutesmith_evaluator.types import Arg, Graph, GraphInput, Node, Ref, TensorSpec

from .affine import FIRST, VIEWS, Averaged
from .geometry import short_name
from .lowering import FLOATS
from .met import Met, met
from .place_sums import Stage, place_sums, whole_sums
from .space import contiguous
from .views import integers

LARGEST = 1 << 31  # elements that kernels index with 32 bits


@dataclass(frozen=True)
class Collapse:
    """An averaged convolution and what its dimensions are like; `x` and `weight` are inputs of the graph."""

    found: Averaged
    x: GraphInput
    weight: GraphInput
    met: tuple[Met, ...]  # by dimension that is averaged over

    @property
    def node(self) -> Node:
        return self.found.node

    @property
    def transposed(self) -> bool:
        return bool(self.node.args[6])

    @property
    def groups(self) -> int:
        (groups,) = integers(self.node.args[8])
        return groups

    @property
    def results(self) -> int:
        """Positions of which the mean is taken."""
        return math.prod(self.node.outputs[0].shape[d] for d in self.found.dims)

    @property
    def elements(self) -> tuple[int, ...]:
        """By dimension that is averaged over: elements of the kernel that keep sums of their own."""
        return tuple(1 if each.is_same else len(each.by_element) for each in self.met)

    @property
    def products(self) -> int:
        """Products of two elements that the results take, where all positions are averaged over."""
        n, channels = self.node.outputs[0].shape[:FIRST]
        return n * channels * (self.x.spec.shape[1] // self.groups) * math.prod(self.elements)


def collapse_of(graph: Graph, found: Averaged, x: GraphInput) -> Collapse | None:
    """`x`: the tensor that the convolution reads, an input of the graph or what an earlier kernel makes."""
    inputs = {i.name: i for i in graph.inputs}
    weight = next((inputs.get(ref.name) for ref in found.node.args[1:2] if isinstance(ref, Ref)), None)
    if weight is None or not (is_plain(x) and is_plain(weight)):
        return None
    stride, padding, dilation = (integers(found.node.args[k]) for k in (3, 4, 5))
    transposed = bool(found.node.args[6])
    results = found.node.outputs[0].shape
    inner = len(results) - 1
    along = []
    for d in found.dims:
        k, size, kernel = d - FIRST, x.spec.shape[d], weight.spec.shape[d]
        places = met(size, results[d], kernel, stride[k], padding[k], dilation[k], transposed=transposed)
        along.append(Met(size, places, is_inner=d == inner))
    if not found.is_whole and (x.spec.dtype != "float32" or weight.spec.dtype != "float32"):
        return None
    if not all(all(each.by_element) for each in along) or all(each.size == 1 for each in along):
        return None
    if not all(each.is_covered for each in along if each.size > 1):
        return None
    return Collapse(found, x, weight, tuple(along))


def is_plain(given: GraphInput) -> bool:
    """Whether kernels can read a tensor: contiguous, floating, neither empty nor past 32 bits."""
    spec = given.spec
    size = math.prod(spec.shape)
    return spec.dtype in FLOATS and spec.strides == contiguous(spec.shape) and 0 < size < LARGEST


def input_stages(collapse: Collapse, name: str) -> list[Stage]:
    """Kernels that take the means of the input, one after the other; `name`: of what they make."""
    steps = _order(collapse)
    made: list[Stage] = []
    given = collapse.x
    for number, dims in enumerate(steps, 1):
        scale = 1 / collapse.results if number == len(steps) else 1.0
        along = tuple(collapse.met[collapse.found.dims.index(d)] for d in dims)
        label = f"{name}_{number}"
        if along[0].is_same and dims[-1] == len(given.spec.shape) - 1:
            made.append(whole_sums(given, dims[0], along, scale, label))
        else:
            single = replace(along[0], by_element=along[0].by_element[:1]) if along[0].is_same else along[0]
            made.append(place_sums(given, dims[0], single, scale, label))
        given = made[-1][1]
    return made if collapse.found.is_whole else [*made[:-1], _of_channels(collapse, made[-1])]


def _of_channels(collapse: Collapse, stage: Stage) -> Stage:
    """The same tensor, whose channels are those of the input and elements of the kernel."""
    program, result = stage
    n, channels, *others = result.spec.shape
    rest = others[len(collapse.found.dims) :]
    shape = (n, channels * math.prod(collapse.elements), *rest)
    result = replace(result, spec=TensorSpec(shape, "float32", contiguous(shape)))
    (node,) = program.graph.nodes
    return replace(program, graph=replace(program.graph, nodes=(replace(node, outputs=(result.spec,)),))), result


def _order(collapse: Collapse) -> list[tuple[int, ...]]:
    """Which dimensions each kernel reduces. Last dimensions of which all elements meet the same places go first and at
    once; else the one before the last, so that neighbouring threads read neighbouring elements."""
    by_dim = dict(zip(collapse.found.dims, collapse.met, strict=True))
    dims = [d for d, each in by_dim.items() if each.size > 1]
    last = len(collapse.x.spec.shape) - 1
    whole: list[int] = []
    if collapse.found.is_whole:
        for d in reversed(dims):
            if not by_dim[d].is_same:
                break
            whole.insert(0, d)
        whole = [*whole] if not whole else list(range(whole[0], last + 1))
    rest = [d for d in dims if d not in whole]
    beside = [d for d in rest if d != last]
    first = beside[-1:] if beside else rest[:1]
    ordered = [*first, *(d for d in rest if d not in first)]
    return [*([tuple(whole)] if whole else []), *((d,) for d in ordered)]


def weight_graph(collapse: Collapse, graph: Graph, name: str) -> Graph | None:
    """What makes the weight that the means are multiplied with; None where that is the weight itself.

    Elements that meet the same places are added up; for a convolution that is left, those with means of their own
    become channels."""
    weight, dims = collapse.weight, collapse.found.dims
    same = tuple(d for d, each in zip(dims, collapse.met, strict=True) if each.is_same)
    added = tuple(d for d in same if weight.spec.shape[d] > 1)
    shape = tuple(1 if d in added else n for d, n in enumerate(weight.spec.shape))
    nodes: list[Node] = []
    if added:
        nodes.append(_node(f"{name}_added", "sum.dim_IntList", (Ref(weight.name), added, True), shape))
    if not collapse.found.is_whole:
        value = Ref(nodes[-1].name if nodes else weight.name)
        nodes += _as_channels(value, shape, len(dims), name, transposed=collapse.transposed)
    if not nodes:
        return None
    outputs = (Ref(nodes[-1].name),)
    return replace(graph, inputs=(weight,), nodes=tuple(nodes), outputs=outputs, returns_tuple=False, dynamic_dims=())


def _as_channels(value: Ref, shape: tuple[int, ...], count: int, name: str, *, transposed: bool) -> list[Node]:
    """A weight whose first `count` dimensions of positions belong to its input channels."""
    nodes = []
    if transposed:
        order = (0, *range(FIRST, FIRST + count), 1, *range(FIRST + count, len(shape)))
        shape = tuple(shape[d] for d in order)
        nodes.append(_node(f"{name}_turned", "permute.default", (value, order), shape))
        value = Ref(nodes[-1].name)
        flat = (math.prod(shape[: 1 + count]), *shape[1 + count :])
    else:
        flat = (shape[0], math.prod(shape[1 : FIRST + count]), *shape[FIRST + count :])
    return [*nodes, _node(f"{name}_flat", "view.default", (value, flat), flat)]


def rest_graph(collapse: Collapse, graph: Graph, means: GraphInput, weight: GraphInput) -> Graph:
    """The graph that reads the means instead of the convolution's input."""
    found = collapse.found
    nodes: list[Node] = []
    for node in graph.nodes:
        if node is found.node:
            left = _product(collapse, means, weight) if found.is_whole else _convolution(collapse, means, weight)
            nodes += left
        elif node in found.between:
            nodes.append(_averaged(collapse, node))
        elif node in found.ends:
            nodes += _end(collapse, node)
        else:
            nodes.append(node)
    known = {i.name for i in graph.inputs}
    inputs = (*graph.inputs, *(i for i in (means, weight) if i.name not in known))
    return replace(graph, inputs=inputs, nodes=tuple(nodes), dynamic_dims=())


def _product(collapse: Collapse, means: GraphInput, weight: GraphInput) -> list[Node]:
    """For each result of the batch: the sum over channels and elements of means times the weight."""
    node, groups = collapse.node, collapse.groups
    n, channels = node.outputs[0].shape[:FIRST]
    inner, outer, elements = collapse.x.spec.shape[1] // groups, channels // groups, collapse.elements
    name = node.name
    left = (n, groups, 1, inner, *elements)
    nodes = [_node(f"{name}_means", "view.default", (Ref(means.name), left), left)]
    if collapse.transposed:
        lines = (1, groups, inner, outer, *elements)
        nodes.append(_node(f"{name}_lines", "view.default", (Ref(weight.name), lines), lines))
        order = (0, 1, 3, 2, *range(4, len(lines)))
        right = tuple(lines[d] for d in order)
        nodes.append(_node(f"{name}_weight", "permute.default", (Ref(f"{name}_lines"), order), right))
    else:
        right = (1, groups, outer, inner, *elements)
        nodes.append(_node(f"{name}_weight", "view.default", (Ref(weight.name), right), right))
    full = (n, groups, outer, inner, *elements)
    depth = tuple(range(3, len(full)))
    nodes.append(_node(f"{name}_products", "mul.Tensor", (Ref(f"{name}_means"), Ref(f"{name}_weight")), full))
    nodes.append(_node(f"{name}_sums", "sum.dim_IntList", (Ref(f"{name}_products"), depth, False), full[:3]))
    shape = (n, channels, *(1 for _ in elements))
    return [*nodes, *_biased(collapse, Ref(f"{name}_sums"), shape)]


def _biased(collapse: Collapse, sums: Ref, shape: tuple[int, ...]) -> list[Node]:
    """What the convolution's own node becomes: its mean, of this shape."""
    node, bias = collapse.node, collapse.node.args[2]
    dtype = node.outputs[0].dtype
    if not isinstance(bias, Ref):
        return [replace(_node(node.name, "view.default", (sums, shape), shape, dtype), line=node.line)]
    ones = (1, shape[1], *(1 for _ in shape[FIRST:]))
    return [
        _node(f"{node.name}_plain", "view.default", (sums, shape), shape),
        _node(f"{node.name}_bias", "view.default", (bias, ones), ones),
        _node(node.name, "add.Tensor", (Ref(f"{node.name}_plain"), Ref(f"{node.name}_bias")), shape, dtype),
    ]


def _convolution(collapse: Collapse, means: GraphInput, weight: GraphInput) -> list[Node]:
    """Over the dimensions that are not averaged over; its result then has those again, with one position each."""
    node, count = collapse.node, len(collapse.found.dims)
    spec = node.outputs[0]
    shape = (*spec.shape[:FIRST], *spec.shape[FIRST + count :])
    args = list(node.args)
    args[:2] = [Ref(means.name), Ref(weight.name)]
    for k in (3, 4, 5, 7):
        args[k] = integers(args[k])[count:]
    whole = (*spec.shape[:FIRST], *(1 for _ in range(count)), *spec.shape[FIRST + count :])
    less = f"{node.name}_less"
    left = TensorSpec(shape, spec.dtype, contiguous(shape))
    return [
        replace(node, name=less, args=tuple(args), outputs=(left,)),
        _node(node.name, "view.default", (Ref(less), whole), whole, spec.dtype),
    ]


def _averaged(collapse: Collapse, node: Node) -> Node:
    """A step between, of the mean."""
    spec = node.outputs[0]
    rank = len(spec.shape)
    dims = range(FIRST, rank) if collapse.found.is_whole else collapse.found.dims
    shape = tuple(1 if d in dims else n for d, n in enumerate(spec.shape))
    outputs = (TensorSpec(shape, spec.dtype, contiguous(shape)), *node.outputs[1:])
    args = (node.args[0], shape) if short_name(node.op) in VIEWS else node.args
    op = "aten.view.default" if short_name(node.op) in VIEWS else node.op
    return replace(node, op=op, args=args, outputs=outputs)


def _end(collapse: Collapse, node: Node) -> list[Node]:
    """A mean or a sum over positions, of which one is left: a sum is that many times the mean."""
    if short_name(node.op) == "mean":
        return [node]
    given = node.args[0]
    assert isinstance(given, Ref)
    spec = _averaged(collapse, next(n for n in (collapse.node, *collapse.found.between) if n.name == given.name))
    times = f"{node.name}_times"
    scaled = replace(spec, name=times, op="aten.mul.Tensor", args=(given, float(collapse.results)), kwargs={})
    return [replace(scaled, outputs=scaled.outputs[:1]), replace(node, args=(Ref(times), *node.args[1:]))]


def _node(name: str, op: str, args: tuple[Arg, ...], shape: tuple[int, ...], dtype: str = "float32") -> Node:
    return Node(name, f"aten.{op}", args, {}, (TensorSpec(shape, dtype, contiguous(shape)),))
