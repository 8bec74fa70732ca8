"""Which dimensions a graph's reductions run over, and so how its index space is laid out: rows first, then columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutesmith_evaluator.types import Graph, Node, Ref, TensorSpec

from .contract import Unsupported
from .products import PRODUCTS, factors
from .reductions import REDUCTIONS, natural_shape
from .space import Space, stored_strides


@dataclass(frozen=True)
class Geometry:
    """Sizes of the kept and the reduced dimensions; `order`: those of a value that has both, as memory has them."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    order: tuple[int, ...]  # root dimensions, outermost first; they count rows first

    @property
    def row_count(self) -> int:
        return math.prod(self.rows)

    @property
    def space(self) -> Space:
        return Space.of(self.rows, self.columns)

    def is_full(self, shape: tuple[int, ...]) -> bool:
        """Whether an output has an element per column (softmax), not only per row (sum)."""
        return not self.columns or math.prod(shape) == math.prod(self.rows) * math.prod(self.columns)


def geometry(graph: Graph, *, of_output: bool = False) -> Geometry:
    """That of the first reduction that leaves rows, else of the first; the largest output's sizes if they say more.
    `of_output`: a product's rows are the output's dimensions, through whatever views it came there."""
    largest = max((output_spec(graph, r).shape for r in graph.outputs), key=math.prod)
    found = [n for n in graph.nodes if short_name(n.op) in REDUCTIONS or short_name(n.op) in PRODUCTS]
    if not found:
        return _as_stored(graph, largest)
    if short_name(found[0].op) in PRODUCTS:
        return _of_product(graph, found[0], largest if of_output else None)
    found = [n for n in found if short_name(n.op) in REDUCTIONS]
    node = next((n for n in found if not _is_over_all(graph, n)), found[0])
    shape, reduced = natural_shape(node, _reduced_spec(graph, node).shape)
    columns = tuple(shape[d] for d in reduced)
    if math.prod(columns) == 1:
        raise Unsupported(f"{node.op} runs over a single element: there is nothing to reduce", line=node.line)
    rows = tuple(n for d, n in enumerate(shape) if d not in reduced)
    if reduced != tuple(range(len(rows), len(shape))):
        return Geometry(rows, columns, _order(len(shape), reduced))
    if math.prod(largest) != math.prod(shape):
        return _in_place(largest if math.prod(largest) == math.prod(rows) else rows, columns)
    leading = largest[: len(largest) - len(columns)]
    return _in_place(leading if largest[len(leading) :] == columns else rows, columns)


def _is_over_all(graph: Graph, node: Node) -> bool:
    shape, reduced = natural_shape(node, _reduced_spec(graph, node).shape)
    return math.prod(n for d, n in enumerate(shape) if d not in reduced) == 1


def _of_product(graph: Graph, node: Node, output: tuple[int, ...] | None) -> Geometry:
    """A row per element of the product, the shared dimension as its columns."""
    depth = output_spec(graph, factors(node)[0]).shape[-1]
    if depth == 1:
        raise Unsupported(f"{node.op} runs over a single element: there is nothing to add up", line=node.line)
    return _in_place(output or node.outputs[0].shape, (depth,))


def _in_place(rows: tuple[int, ...], columns: tuple[int, ...]) -> Geometry:
    return Geometry(rows, columns, tuple(range(len(rows) + len(columns))))


def _as_stored(graph: Graph, shape: tuple[int, ...]) -> Geometry:
    """The dimensions of the largest output, as they lie in its memory."""
    spec = next(s for s in (output_spec(graph, r) for r in graph.outputs) if s.shape == shape)
    strides = stored_strides(spec)
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    places = tuple(order.index(d) for d in range(len(shape)))
    return Geometry((), tuple(shape[d] for d in order), places)


def _order(rank: int, reduced: tuple[int, ...]) -> tuple[int, ...]:
    """Where each dimension of the reduced tensor is among the root dimensions."""
    kept = [d for d in range(rank) if d not in reduced]
    return tuple((*kept, *reduced).index(d) for d in range(rank))


def _reduced_spec(graph: Graph, node: Node) -> TensorSpec:
    source = node.args[0]
    assert isinstance(source, Ref)
    return output_spec(graph, source)


def output_spec(graph: Graph, ref: Ref) -> TensorSpec:
    for i in graph.inputs:
        if i.name == ref.name:
            return i.spec
    return next(n for n in graph.nodes if n.name == ref.name).outputs[ref.index]


def short_name(op: str) -> str:
    """aten.mul.Tensor → mul; in-place ops were functionalised."""
    return op.split(".")[1] if "." in op else op
