"""In which order of dimensions PyTorch's attention leaves its result on CUDA: a trace without a device cannot say."""

from __future__ import annotations

from dataclasses import replace

from cutesmith_evaluator.types import Arg, Graph, Node, Ref, TensorSpec

from .aten import POINTWISE
from .geometry import output_spec, short_name

SDPA = "scaled_dot_product_attention"
LEAST_COLUMNS = 4  # of which PyTorch's kernel for fp32 wants multiples


def with_cuda_formats(graph: Graph) -> Graph:
    """The graph with the strides that results of attention in fp32 have: PyTorch's kernel writes (batch, query, head,
    column). In half precision its kernels keep the queries' order, as traced."""
    turned: dict[str, TensorSpec] = {}
    nodes = []
    for node in graph.nodes:
        spec = _turned(graph, node) if short_name(node.op) == SDPA else _after(turned, node)
        if spec is not None:
            turned[node.name] = spec
            node = replace(node, outputs=(spec,))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _turned(graph: Graph, node: Node) -> TensorSpec | None:
    query, key, value = node.args[:3]
    spec = node.outputs[0]
    if not isinstance(query, Ref) or not isinstance(key, Ref) or not isinstance(value, Ref):
        return None
    shapes = [output_spec(graph, ref).shape for ref in (query, key, value)]
    if spec.dtype != "float32" or any(len(shape) != 4 or shape[1] != spec.shape[1] for shape in shapes):
        return None
    if any(shape[3] % LEAST_COLUMNS for shape in shapes):
        return None
    _, heads, count, width = spec.shape
    return replace(spec, strides=(count * heads * width, width, heads * width, 1))


def _after(turned: dict[str, TensorSpec], node: Node) -> TensorSpec | None:
    """Of what an op gives whose first operand's order is known: the same, or with its dimensions in another one."""
    source: Arg = node.args[0] if node.args else None
    if not isinstance(source, Ref) or source.name not in turned:
        return None
    given, spec = turned[source.name], node.outputs[0]
    if short_name(node.op) in POINTWISE and spec.shape == given.shape:
        return replace(spec, strides=given.strides)
    if short_name(node.op) != "permute":
        return None
    order = node.args[1]
    assert isinstance(order, tuple)
    return replace(spec, strides=tuple(given.strides[d] for d in order if isinstance(d, int)))
