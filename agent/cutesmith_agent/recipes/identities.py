"""What a graph does without effect: reductions over single elements, next to ones that reduce something."""

from __future__ import annotations

import math
from dataclasses import replace

from cutesmith_evaluator.types import Graph, Node, Ref

from .geometry import output_spec, short_name
from .reductions import REDUCTIONS, natural_shape

KEEPING = ("sum", "mean", "prod", "amax", "amin")  # of a single element: that element


def without_identities(graph: Graph) -> Graph:
    """The graph with such reductions as reshapes."""
    sizes = {node.name: size for node in graph.nodes if (size := _reduced(graph, node))}
    if all(size == 1 for size in sizes.values()):
        return graph
    return replace(graph, nodes=tuple(_reshaped(graph, n) if sizes.get(n.name) == 1 else n for n in graph.nodes))


def _reduced(graph: Graph, node: Node) -> int | None:
    """How many elements each result of a reduction is of."""
    if short_name(node.op) not in REDUCTIONS or not isinstance(node.args[0], Ref):
        return None
    shape, reduced = natural_shape(node, output_spec(graph, node.args[0]).shape)
    return math.prod(shape[d] for d in reduced)


def _reshaped(graph: Graph, node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Ref)
    if short_name(node.op) not in KEEPING or output_spec(graph, source).dtype != node.outputs[0].dtype:
        return node
    return replace(node, op="aten.view.default", args=(source, node.outputs[0].shape), kwargs={})
