"""Where a graph has softmax(Q Kᵀ …) V: what softmax takes, and what becomes of its result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cutesmith_evaluator.types import Arg, Graph, GraphInput, Node, Ref, TensorSpec

from .attention_masks import CAUSAL, with_causal_masks
from .geometry import output_spec, short_name
from .space import contiguous

SDPA = "aten.scaled_dot_product_attention.default"
SAFE = "aten._safe_softmax.default"
SOFTMAXES = ("_softmax", "softmax", "_safe_softmax")
CASTS = ("_to_copy", "to", "clone", "contiguous", "alias", "detach")


@dataclass(frozen=True)
class Attention:
    """A graph cut at its softmax over the last dimension of `scores`."""

    scores: Graph  # up to what softmax takes, but for a causal mask
    results: Graph  # from the weights that it gives, an input of this graph
    weights: GraphInput
    diagonal: int | None  # key - query of what a causal mask keeps, at most
    is_safe: bool  # a row whose scores are all -Inf gives zeros, else NaN


def attention_of(graph: Graph) -> Attention | None:
    """The graph's attention, if it has one softmax."""
    graph = with_causal_masks(without_sdpa(graph))
    found = [node for node in graph.nodes if short_name(node.op) in SOFTMAXES]
    if len(found) != 1:
        return None
    (softmax,) = found
    taken = softmax.args[0]
    assert isinstance(taken, Ref)
    spec = softmax.outputs[0]
    rank = len(spec.shape)
    if rank < 2 or softmax.args[1] not in (-1, rank - 1):
        return None
    weights = GraphInput(softmax.name, "constant", replace(spec, strides=contiguous(spec.shape)))
    scores, diagonal = _without_causal(graph, taken)
    results = _reaching(graph, graph.outputs, softmax.name)
    return Attention(
        replace(graph, nodes=_reaching(graph, (scores,), None), outputs=(scores,), returns_tuple=False),
        replace(graph, nodes=results, inputs=(*graph.inputs, weights)),
        weights,
        diagonal,
        softmax.op == SAFE,
    )


def _reaching(graph: Graph, refs: tuple[Ref, ...], stop: str | None) -> tuple[Node, ...]:
    """The nodes that `refs` need, in order; none that only the node `stop` needs, nor that itself."""
    nodes = {node.name: node for node in graph.nodes}
    needed: set[str] = set()
    waiting = [ref.name for ref in refs]
    while waiting:
        name = waiting.pop()
        if name in nodes and name != stop and name not in needed:
            needed.add(name)
            waiting += [ref.name for ref in refs_of(nodes[name])]
    return tuple(node for node in graph.nodes if node.name in needed)


def refs_of(node: Node) -> Iterator[Ref]:
    """What a node reads."""
    waiting: list[object] = [*node.args, *node.kwargs.values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Ref):
            yield value
        elif isinstance(value, tuple):
            waiting += value


def _without_causal(graph: Graph, scores: Ref) -> tuple[Ref, int | None]:
    """What a causal mask is applied to, if it is the last thing that happens to scores, and its diagonal."""
    nodes = {node.name: node for node in graph.nodes}
    at = scores
    while at.name in nodes and short_name(nodes[at.name].op) in CASTS:
        source = nodes[at.name].args[0]
        assert isinstance(source, Ref)
        at = source
    node = nodes.get(at.name)
    if node is None or node.op != CAUSAL:
        return scores, None
    masked, diagonal = node.args
    assert isinstance(masked, Ref)
    assert isinstance(diagonal, int)
    return masked, diagonal


def without_sdpa(graph: Graph) -> Graph:
    """Scaled dot product attention as the products, the mask and the softmax that it stands for."""
    nodes: list[Node] = []
    for node in graph.nodes:
        written = _written_out(graph, node) if node.op == SDPA else None
        nodes += written or [node]
    return replace(graph, nodes=tuple(nodes))


def _written_out(graph: Graph, node: Node) -> list[Node] | None:
    """None where dropout is asked for, or a tensor is not floating point."""
    options = dict(zip(("attn_mask", "dropout_p", "is_causal"), node.args[3:], strict=False)) | node.kwargs
    query, key, value = node.args[:3]
    if options.get("dropout_p", 0.0) != 0.0 or not all(isinstance(ref, Ref) for ref in (query, key, value)):
        return None
    assert isinstance(query, Ref)
    assert isinstance(key, Ref)
    assert isinstance(value, Ref)
    written = _Written(graph, node)
    spec = output_spec(graph, query)
    if options.get("enable_gqa"):
        key, value = (written.repeated(ref, spec.shape[-3]) for ref in (key, value))
    scores = written.product(query, written.turned(key))
    scale = options.get("scale")
    scores = written.scaled(scores, 1 / math.sqrt(spec.shape[-1]) if scale is None else float(scale))  # type: ignore[arg-type]
    mask = options.get("attn_mask")
    if isinstance(mask, Ref):
        scores = written.masked(scores, mask)
    if options.get("is_causal"):
        scores = written.add("causal", CAUSAL, (scores, 0), written.spec(scores).shape)
    is_safe = isinstance(mask, Ref) or bool(options.get("is_causal"))
    softmax = SAFE if is_safe else "aten._softmax.default"
    weights = written.add("weights", softmax, (scores, -1, *([] if is_safe else [False])), written.spec(scores).shape)
    written.nodes.append(
        replace(node, op="aten.matmul.default", args=(weights, value), kwargs={})
    )  # under its own name
    return written.nodes


class _Written:
    """Nodes that stand for one; `add` names them after it."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.nodes: list[Node] = []

    def add(self, name: str, op: str, args: tuple[Arg, ...], shape: tuple[int, ...], dtype: str | None = None) -> Ref:
        spec = TensorSpec(shape, dtype or self.node.outputs[0].dtype, contiguous(shape))
        names = {node.name for node in (*self.graph.nodes, *self.nodes)} | {i.name for i in self.graph.inputs}
        full = f"{self.node.name}_{name}"
        while full in names:
            full += "_"
        self.nodes.append(Node(full, op, args, {}, (spec,), self.node.line))
        return Ref(full)

    def spec(self, ref: Ref) -> TensorSpec:
        made = {node.name: node.outputs[0] for node in self.nodes}
        return made.get(ref.name) or output_spec(self.graph, ref)

    def repeated(self, ref: Ref, heads: int) -> Ref:
        """Each head of keys or values as often as queries have heads for it."""
        *batch, own, length, size = self.spec(ref).shape
        if own == heads:
            return ref
        single = self.add("single", "aten.unsqueeze.default", (ref, len(batch) + 1), (*batch, own, 1, length, size))
        wide = (*batch, own, heads // own, length, size)
        copies = self.add("copies", "aten.expand.default", (single, wide), wide)
        whole = (*batch, heads, length, size)
        return self.add("heads", "aten.view.default", (copies, whole), whole)

    def turned(self, ref: Ref) -> Ref:
        *batch, length, size = self.spec(ref).shape
        order = (*range(len(batch)), len(batch) + 1, len(batch))
        return self.add("turned", "aten.permute.default", (ref, order), (*batch, size, length))

    def product(self, left: Ref, right: Ref) -> Ref:
        one, other = self.spec(left).shape, self.spec(right).shape
        batch = _broadcast(one[:-2], other[:-2])
        return self.add("scores", "aten.matmul.default", (left, right), (*batch, one[-2], other[-1]))

    def scaled(self, scores: Ref, scale: float) -> Ref:
        return self.add("scaled", "aten.mul.Tensor", (scores, scale), self.spec(scores).shape)

    def masked(self, scores: Ref, mask: Ref) -> Ref:
        given = self.spec(mask)
        shape = (*_broadcast(self.spec(scores).shape[:-2], given.shape[:-2]), *self.spec(scores).shape[-2:])
        if given.dtype != "bool":
            return self.add("masked", "aten.add.Tensor", (scores, mask), shape)
        nothing = self.add("nothing", "aten.scalar_tensor.default", (-math.inf,), ())
        return self.add("masked", "aten.where.self", (mask, scores, nothing), shape)


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(one), len(other))
    padded = [(1,) * (rank - len(shape)) + shape for shape in (one, other)]
    return tuple(max(pair) for pair in zip(*padded, strict=True))
