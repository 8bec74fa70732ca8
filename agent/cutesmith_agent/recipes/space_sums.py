"""Sums and means of a convolution's results over space in two steps: by tiles in its kernel, then of those."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref, TensorSpec

from .geometry import output_spec, short_name
from .reductions import reduced_dims
from .space import contiguous


@dataclass(frozen=True)
class SpaceSum:
    """A graph's first sum or mean over all of space, and perhaps batch or channels: `node`, at this place."""

    graph: Graph
    at: int

    @property
    def node(self) -> Node:
        return self.graph.nodes[self.at]

    @property
    def summed(self) -> Ref:
        """What is added up."""
        source = self.node.args[0]
        assert isinstance(source, Ref)
        return source

    def sums(self, tiles: int) -> GraphInput:
        """What the first kernel leaves: sums of each image's channels, tile by tile."""
        shape = (*output_spec(self.graph, self.summed).shape[:2], tiles)
        return GraphInput(f"{self.node.name}_of_tiles", "constant", TensorSpec(shape, "float32", contiguous(shape)))

    def rest(self, tiles: int) -> Graph:
        """The graph from these sums on."""
        given, result = self.sums(tiles), self.node.outputs[0]
        shape = output_spec(self.graph, self.summed).shape
        reduced = reduced_dims(self.node, shape)
        kept = tuple(n for d, n in enumerate(shape[:2]) if d not in reduced)
        spec = TensorSpec(kept, "float32", contiguous(kept))
        dims = (*(d for d in reduced if d < 2), 2)
        name, line = self.node.name, self.node.line
        added = [Node(f"{name}_sum", "aten.sum.dim_IntList", (Ref(given.name), dims, False), {}, (spec,), line)]
        if short_name(self.node.op) == "mean":
            share = 1 / math.prod(shape[d] for d in reduced)
            added.append(Node(f"{name}_mean", "aten.mul.Tensor", (Ref(added[-1].name), share), {}, (spec,), line))
        added.append(Node(name, "aten.view.default", (Ref(added[-1].name), result.shape), {}, (result,), line))
        nodes = (*added, *self.graph.nodes[self.at + 1 :])
        return replace(self.graph, inputs=(*self.graph.inputs, given), nodes=nodes, dynamic_dims=())


def space_sum_of(graph: Graph) -> SpaceSum | None:
    """None where the graph has no such sum in fp32."""
    for at, node in enumerate(graph.nodes):
        if short_name(node.op) in ("sum", "mean") and isinstance(node.args[0], Ref):
            shape = output_spec(graph, node.args[0]).shape
            whole = len(shape) > 2 and set(reduced_dims(node, shape)) >= set(range(2, len(shape)))
            return SpaceSum(graph, at) if whole and node.outputs[0].dtype == "float32" else None
    return None
