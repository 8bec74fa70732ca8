"""What is a simpler op by its sizes: reductions over single elements are views, average pools of one window means."""

from __future__ import annotations

import math
from dataclasses import replace

from cutesmith_evaluator.types import Graph, Node, Ref

from .geometry import output_spec, short_name
from .pools import plain_means

_KEPT = ("sum", "mean", "amax", "amin", "prod", "max", "min")  # what one element gives is itself


def without_singles(graph: Graph) -> Graph:
    return replace(graph, nodes=tuple(_as_view(graph, _as_mean(graph, node)) for node in graph.nodes))


def _as_mean(graph: Graph, node: Node) -> Node:
    source, windows = node.args[0] if node.args else None, plain_means(node)
    if windows is None or not isinstance(source, Ref):
        return node
    dims = len(windows)
    if tuple(size for size, _ in windows) != output_spec(graph, source).shape[-dims:]:
        return node
    return replace(node, op="aten.mean.dim", args=(source, tuple(range(-dims, 0)), True), kwargs={})


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
