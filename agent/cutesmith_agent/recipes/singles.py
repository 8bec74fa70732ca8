"""Reductions that run over dimensions of one element, as what they are: views."""

from __future__ import annotations

import math
from dataclasses import replace

from cutesmith_evaluator.types import Graph, Node, Ref

from .geometry import output_spec, short_name

_KEPT = ("sum", "mean", "amax", "amin", "prod", "max", "min")  # what one element gives is itself


def without_singles(graph: Graph) -> Graph:
    return replace(graph, nodes=tuple(_as_view(graph, node) for node in graph.nodes))


def _as_view(graph: Graph, node: Node) -> Node:
    source = node.args[0] if node.args else None
    if short_name(node.op) not in _KEPT or not isinstance(source, Ref):
        return node
    given, made = output_spec(graph, source), node.outputs[0]
    if math.prod(given.shape) != math.prod(made.shape) or given.dtype != made.dtype or _reads_places(graph, node):
        return node
    return replace(node, op="aten.view.default", args=(source, made.shape), kwargs={}, outputs=(made,))


def _reads_places(graph: Graph, node: Node) -> bool:
    """Whether where the largest or smallest element is matters."""
    second = Ref(node.name, 1)
    return second in graph.outputs or any(second in n.args or second in n.kwargs.values() for n in graph.nodes)
