"""Causal masks: scores that forward fills with -Inf above a diagonal, however it writes that."""

from __future__ import annotations

import math
from dataclasses import replace

from cutesmith_evaluator.types import Arg, Graph, Node, Ref, TensorSpec

from .geometry import short_name
from .triangles import Triangle, triangle_of

CAUSAL = "cutesmith.causal.default"  # its first argument where column - row is at most its second, elsewhere -Inf
_SAME = ("clone", "contiguous", "alias", "detach", "unsqueeze", "view", "expand", "_to_copy")
_NUMBERS = ("scalar_tensor", "full")

Nodes = dict[str, Node]


def with_causal_masks(graph: Graph) -> Graph:
    """Each causal mask as one node."""
    nodes = {node.name: node for node in graph.nodes}
    return replace(graph, nodes=tuple(_as_causal(nodes, node) for node in graph.nodes))


def _as_causal(nodes: Nodes, node: Node) -> Node:
    found = _filled(nodes, node)
    if found is None:
        return node
    scores, mask, keeps = found
    spec = node.outputs[0]
    triangle = _kept(nodes, mask, spec.shape[-2:])
    if triangle is not None and not keeps:
        triangle = _other(triangle)
    if triangle is None or triangle.kind != "lower" or _spec(nodes, scores) != spec:
        return node
    return replace(node, op=CAUSAL, args=(scores, triangle.diagonal), kwargs={})


def _filled(nodes: Nodes, node: Node) -> tuple[Ref, Ref, bool] | None:
    """(scores, mask, whether scores stay where the mask is true) of a node that puts -Inf elsewhere."""
    name = short_name(node.op)
    if name == "masked_fill" and len(node.args) == 3:
        scores, mask, value = node.args
        keeps = False
    elif name == "where" and len(node.args) == 3:
        mask, scores, value = node.args
        keeps = _number(nodes, scores) is None
        scores, value = (scores, value) if keeps else (value, scores)
    else:
        return None
    if not isinstance(scores, Ref) or not isinstance(mask, Ref) or _number(nodes, value) != -math.inf:
        return None
    return scores, mask, keeps


def _kept(nodes: Nodes, mask: Arg, shape: tuple[int, ...]) -> Triangle | None:
    """The triangle in which a matrix of this shape is true or not zero, if it is so in one."""
    node = nodes.get(mask.name) if isinstance(mask, Ref) else None
    if node is None:
        return None
    name = short_name(node.op)
    if name in _SAME and isinstance(node.args[0], Ref) and _spec(nodes, node.args[0]) is not None:
        source = _spec(nodes, node.args[0])
        return _kept(nodes, node.args[0], shape) if source and source.shape[-2:] == shape else None
    if name in ("logical_and", "bitwise_and"):
        return next((_kept(nodes, a, shape) for a, b in (node.args, node.args[::-1]) if _number(nodes, b) == 1), None)
    if name in ("logical_not", "bitwise_not"):
        return _other(_kept(nodes, node.args[0], shape))
    if name in ("eq", "ne") and _number(nodes, node.args[1]) == 0:
        kept = _kept(nodes, node.args[0], shape)
        return _other(kept) if name == "eq" else kept
    if name == "where" and _number(nodes, node.args[1]) not in (None, 0.0) and _number(nodes, node.args[2]) == 0:
        return _kept(nodes, node.args[0], shape)
    return triangle_of(nodes, node, shape)


def _other(triangle: Triangle | None) -> Triangle | None:
    """What a triangle leaves out."""
    if triangle is None:
        return None
    return (
        Triangle("lower", triangle.diagonal - 1)
        if triangle.kind == "upper"
        else Triangle("upper", triangle.diagonal + 1)
    )


def _number(nodes: Nodes, value: Arg) -> float | None:
    """A number, or the one that all elements of a constant are."""
    if isinstance(value, Ref):
        node = nodes.get(value.name)
        if node is None or short_name(node.op) not in _NUMBERS:
            return None
        value = node.args[0 if short_name(node.op) == "scalar_tensor" else 1]
    return float(value) if isinstance(value, int | float) else None


def _spec(nodes: Nodes, ref: Ref) -> TensorSpec | None:
    return nodes[ref.name].outputs[ref.index] if ref.name in nodes else None
