"""Convolutions whose results are only averaged over positions, with steps in between that are affine.

Such a mean is that of the convolution itself, taken through the same steps: x → a * x + b, where a and b are the same
at every position that is averaged over, changes places with a mean. That is exact but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutesmith_evaluator.types import Graph, Node, Ref

from .geometry import output_spec, short_name
from .reductions import reduced_dims

CONVOLUTION = "aten.convolution.default"
FIRST = 2  # of a tensor's dimensions, that is one of positions
VIEWS = ("view", "reshape", "_unsafe_view", "flatten", "view_copy")
_FLOATS = ("float32", "float16", "bfloat16")
_NORM = "_native_batch_norm_legit_no_training"
_SUMS = ("add", "sub", "rsub", "neg", "clone", "_to_copy", "detach", "alias", "contiguous")
_ENDS = ("mean", "sum")
End = tuple[Node, tuple[int, ...]]  # with the dimensions that it reduces


@dataclass(frozen=True)
class Averaged:
    """`between`: nodes that read the convolution's results; `ends`: those that reduce over `dims` of positions."""

    node: Node
    between: tuple[Node, ...]
    ends: tuple[Node, ...]
    dims: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether over all positions."""
        return len(self.dims) == len(self.node.outputs[0].shape) - FIRST


def averaged(graph: Graph) -> Iterator[Averaged]:
    """Every convolution of the graph of which only averages are needed."""
    for node in graph.nodes:
        found = _followed(graph, node) if node.op == CONVOLUTION else None
        if found is not None:
            yield found


def refs(node: Node) -> Iterator[Ref]:
    """Every value that a node reads."""
    waiting: list[object] = [*node.args, *node.kwargs.values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Ref):
            yield value
        elif isinstance(value, tuple | list):
            waiting += value


def _followed(graph: Graph, node: Node) -> Averaged | None:
    between: list[Node] = []
    ends: list[End] = []
    values = {node.name}
    for later in graph.nodes[graph.nodes.index(node) + 1 :]:
        read = [ref for ref in refs(later) if ref.name in values]
        if not read:
            continue
        if any(ref.index for ref in read):
            return None
        if short_name(later.op) in _ENDS:
            ends.append((later, reduced_dims(later, output_spec(graph, read[0]).shape)))
        elif is_affine(graph, later, values):
            between.append(later)
            values.add(later.name)
        else:
            return None
    if not ends or any(ref.name in values for ref in graph.outputs):
        return None
    found = Averaged(node, tuple(between), tuple(end for end, _ in ends), _averaged_over(graph, node, between, ends))
    dims = () if found.is_whole else found.dims
    return found if found.dims and all(is_same(graph, later, values, dims) for later in between) else None


def _averaged_over(graph: Graph, node: Node, between: list[Node], ends: list[End]) -> tuple[int, ...]:
    """All positions, the first dimensions of them, or nothing that is covered."""
    rank = len(node.outputs[0].shape)
    every = tuple(range(FIRST, rank))
    if all(_is_over_all(graph, end, reduced) for end, reduced in ends):
        return every
    first = ends[0][1]
    alike = all(reduced == first for _, reduced in ends) and first == every[: len(first)]
    return first if alike and all(short_name(later.op) not in VIEWS for later in between) else ()


def _is_over_all(graph: Graph, end: Node, reduced: tuple[int, ...]) -> bool:
    """Whether all positions are reduced, of channels and batch whatever else."""
    shape = output_spec(graph, next(refs(end))).shape
    return all(d in reduced for d in range(FIRST, len(shape)) if shape[d] > 1)


def is_affine(graph: Graph, node: Node, values: set[str]) -> bool:
    """Whether a node is affine in the values, position by position."""
    name, spec = short_name(node.op), node.outputs[0]
    given = [arg for arg in node.args if isinstance(arg, Ref) and arg.name in values]
    if not given or len(given) < sum(ref.name in values for ref in refs(node)) or spec.dtype not in _FLOATS:
        return False
    shape = output_spec(graph, given[0]).shape
    if name in VIEWS:
        return len(spec.shape) > FIRST and spec.shape[:FIRST] == shape[:FIRST]
    if spec.shape != shape:
        return False
    if name in _SUMS:
        return True
    if name in ("mul", "div") and not node.kwargs:
        return len(given) == 1 and (name == "mul" or given[0] == node.args[0])
    return name == _NORM and given == [node.args[0]]


def is_same(graph: Graph, node: Node, values: set[str], dims: tuple[int, ...] = ()) -> bool:
    """Whether all else that a node reads is the same at all positions along these dimensions; none: all of them."""
    rank = len(node.outputs[0].shape)
    if short_name(node.op) in (*VIEWS, _NORM):
        return True
    over = dims or range(FIRST, rank)
    others = [output_spec(graph, ref).shape for ref in refs(node) if ref.name not in values]
    return not any(shape[d - rank] > 1 for shape in others for d in over if rank - d <= len(shape))
