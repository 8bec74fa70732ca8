"""Sums of a tensor over the places that elements of a convolution's kernel meet, one dimension after the other.

A kernel reads what all elements meet once, as a reduction, and adds the few places at the edges that are one
element's alone: nothing is subtracted, so that Inf and NaN stay where they are.
"""

from __future__ import annotations

import math

from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref, TensorSpec

from .ir import Builder, Expr
from .lowering import Program, Store
from .met import Met
from .space import contiguous

Stage = tuple[Program, GraphInput]  # a kernel, and the tensor that it makes
CONVOLUTION = "aten.convolution.default"
COLUMNS = 2  # the place of a row's columns among a program's sizes: what stands before and after them comes first


def whole_sums(given: GraphInput, kept: int, met: tuple[Met, ...], scale: float, name: str) -> Stage:
    """Over the last dimensions at once, where all elements meet the same places: to size 1 each.

    `kept`: dimensions before them; `scale`: a factor of the sums."""
    shape = given.spec.shape
    own = [each.by_element[0] for each in met]
    strides = given.spec.strides[kept:]
    sizes = (math.prod(shape[:kept]), *map(len, own))
    b = Builder(frozenset(range(1, len(sizes))))
    row = math.prod(shape[kept:])
    along = tuple(places.step * stride for places, stride in zip(own, strides, strict=True))
    offset = sum(places.start * stride for places, stride in zip(own, strides, strict=True))
    value = _scaled(b, b.reduce("sum", b.load(given.name, given.spec.dtype, (row, *along), offset)), scale)
    result = result_of(name, (*shape[:kept], *(1 for _ in own)))
    store = Store(0, value, (1, *(0 for _ in own)), 0, per_column=False)
    dims = tuple((k,) for k in range(len(sizes)))
    return Program(part_graph(given, result), sizes, 1, dims, (store,)), result


def place_sums(given: GraphInput, dim: int, met: Met, scale: float, name: str) -> Stage:
    """Over one dimension, which then has a sum for each element of the kernel."""
    shape = given.spec.shape
    inner = math.prod(shape[dim + 1 :])
    outer = math.prod(shape[:dim])
    count = len(met.by_element)
    b = Builder(frozenset((COLUMNS,)))

    def load(place: int, step: int) -> Expr:
        return b.load(given.name, given.spec.dtype, (shape[dim] * inner, 1, step * inner), place * inner)

    stores = []
    for element in range(count):
        core = met.core(element)
        value = b.reduce("sum", load(core.start, core.step))
        for place in met.edges(element):
            value = b.op("add", value, load(place, 0))
        stores.append(Store(0, _scaled(b, value, scale), (count * inner, 1, 0), element * inner, per_column=False))
    result = result_of(name, (*shape[:dim], count, *shape[dim + 1 :]))
    sizes = (outer, inner, met.count)
    return Program(part_graph(given, result), sizes, COLUMNS, ((0,), (1,), (2,)), tuple(stores)), result


def _scaled(b: Builder, value: Expr, scale: float) -> Expr:
    return b.op("mul", value, b.const(scale))


def result_of(name: str, shape: tuple[int, ...]) -> GraphInput:
    """What later kernels read of one."""
    return GraphInput(name, "constant", TensorSpec(shape, "float32", contiguous(shape)))


def part_graph(given: GraphInput, result: GraphInput) -> Graph:
    """What a program is of: a part of a convolution."""
    node = Node(result.name, CONVOLUTION, (Ref(given.name),), {}, (result.spec,))
    return Graph((given,), (node,), (Ref(result.name),), False, (), (), "conv", 0, 0)
