"""Products of which forward keeps a triangle: `torch.triu` and `torch.tril` of a result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cutesmith_evaluator.types import Arg, Graph, Node, Ref

from .geometry import output_spec, short_name

_COMPARED: dict[str, Literal["upper", "lower"]] = {"ge": "upper", "le": "lower"}


@dataclass(frozen=True)
class Triangle:
    """Results stay where column - row is at least (upper) or at most (lower) `diagonal`; the others are zero."""

    kind: Literal["upper", "lower"]
    diagonal: int

    @property
    def sign(self) -> str:
        return ">=" if self.kind == "upper" else "<="


def without_triangle(graph: Graph) -> tuple[Graph, Triangle] | None:
    """The graph up to its last op, where that keeps a triangle of the only result. Shapes are fixed then."""
    if len(graph.outputs) != 1:
        return None
    nodes = {n.name: n for n in graph.nodes}
    last = nodes.get(graph.outputs[0].name)
    if last is None or short_name(last.op) != "where":
        return None
    condition, kept, other = (_node(nodes, arg) for arg in last.args)
    if condition is None or other is None or kept is None or other.op != "aten.scalar_tensor.default":
        return None
    result, spec = last.args[1], last.outputs[0]
    triangle = triangle_of(nodes, condition, spec.shape[-2:])
    if other.args[0] != 0 or not isinstance(result, Ref) or triangle is None or output_spec(graph, result) != spec:
        return None
    return replace(graph, outputs=(result,), dynamic_dims=()), triangle


def _node(nodes: dict[str, Node], arg: Arg) -> Node | None:
    return nodes.get(arg.name) if isinstance(arg, Ref) else None


def triangle_of(nodes: dict[str, Node], condition: Node, shape: tuple[int, ...]) -> Triangle | None:
    """Of a comparison of column - row with a number, for every row and column of this shape."""
    kind = _COMPARED.get(short_name(condition.op))
    if kind is None or len(condition.args) != 2:
        return None
    difference, diagonal = _node(nodes, condition.args[0]), condition.args[1]
    if difference is None or short_name(difference.op) != "sub" or not isinstance(diagonal, int):
        return None
    column, row = (_node(nodes, arg) for arg in difference.args)
    if difference.kwargs.get("alpha", 1) != 1 or shape != difference.outputs[0].shape:
        return None
    counted = _counts(nodes, column, -2, shape[1]) and _counts(nodes, row, -1, shape[0])
    return Triangle(kind, diagonal) if counted else None


def _counts(nodes: dict[str, Node], node: Node | None, dim: int, size: int) -> bool:
    """Whether a node is 0, 1, ... size - 1 with a dimension of one element at `dim`."""
    if node is None or short_name(node.op) != "unsqueeze" or node.args[1] != dim:
        return False
    numbers = _node(nodes, node.args[0])
    return numbers is not None and short_name(numbers.op) == "arange" and numbers.args == (0, size, 1)
