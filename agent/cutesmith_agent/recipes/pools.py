"""Pooling: what one output element is, as a window of an input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref

from .contract import Unsupported
from .geometry import short_name
from .ir import Const, Expr, Load, Op, WindowDim, walk
from .space import WINDOW, Index, contiguous
from .views import integers, source

if TYPE_CHECKING:
    from .lowering import Lowerer

Emit = Callable[["Lowerer", Node, int, tuple[Index, ...]], Expr]
RESHAPES = ("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten")
AVERAGES = ("avg_pool1d", "avg_pool2d", "avg_pool3d")
MOST_TAPS = 256  # elements of a window: each is a line of machine code


def _argument(node: Node, position: int, default: object) -> object:
    return node.args[position] if position < len(node.args) else default


def _per_dim(node: Node, position: int, dims: int, default: tuple[int, ...]) -> tuple[int, ...]:
    values = integers(_argument(node, position, ()))  # type: ignore[arg-type]
    values = values or default
    return values * dims if len(values) == 1 else values


def plain_means(node: Node) -> tuple[tuple[int, int], ...] | None:
    """Size and stride along each dimension of an average pool whose windows lie inside its input and are divided by
    their size; None for all else."""
    name = short_name(node.op)
    if name not in AVERAGES:
        return None
    dims = AVERAGES.index(name) + 1
    size = _per_dim(node, 1, dims, ())
    is_padded = any(_per_dim(node, 3, dims, (0,)))
    if is_padded or _argument(node, 4, False) or _argument(node, 6, None) is not None:
        return None
    return tuple(zip(size, _per_dim(node, 2, dims, size), strict=True))


@dataclass(frozen=True)
class _Pooling:
    """Windows of a plane; `whole`: a mean counts its padding, too; `divisor`: in place of the count."""

    kind: Literal["max", "mean"]
    plane: Index
    windows: tuple[WindowDim, ...]
    whole: bool
    divisor: int | None

    def of(self, lowerer: Lowerer, load: Load, element: Expr | None = None, needed: tuple[Load, ...] = ()) -> Expr:
        """`element`: what each is computed to, where that is not what is loaded, and what else that needs."""
        place = (self.plane.terms, self.plane.offset)
        return lowerer.builder.pool(
            self.kind, load, place, self.windows, whole=self.whole, divisor=self.divisor, element=element, needed=needed
        )


def _pool(kind: Literal["max", "mean"], dims: int) -> Emit:
    def emit(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
        if output:
            raise Unsupported(f"no recipe covers the indices that {node.op} returns", line=node.line)
        size = _per_dim(node, 1, dims, ())
        stride = _per_dim(node, 2, dims, size)
        padding = _per_dim(node, 3, dims, (0,) * dims)
        dilation = _per_dim(node, 4, dims, (1,) * dims) if kind == "max" else (1,) * dims
        whole = bool(_argument(node, 5, True)) if kind == "mean" else True
        override = _argument(node, 6, None) if kind == "mean" else None
        shape = lowerer.spec(source(node)).shape
        places = _places(lowerer, node, shape)
        windows = windows_of(lowerer, index, shape, places, size, stride, padding, dilation)
        plane = plane_of(lowerer, index[: len(shape) - dims], places)
        return _pooled(lowerer, node, _Pooling(kind, plane, windows, whole, _divisor(node, override)), index)

    return emit


def _places(lowerer: Lowerer, node: Node, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of what is pooled, where that is an input of the graph."""
    given = input_of(lowerer, source(node))
    if given is None or given.spec.strides == contiguous(given.spec.shape):
        return contiguous(shape)
    if given.spec.shape != shape:
        raise Unsupported(f"no recipe covers {node.op} of a rearranged tensor", line=node.line)
    return given.spec.strides


def windows_of(
    lowerer: Lowerer,
    index: tuple[Index, ...],
    shape: tuple[int, ...],
    places: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[WindowDim, ...]:
    """The window of an input of this shape, whose strides are `places`, that the result at `index` stands for, in the
    last dimensions."""
    windows = []
    for d, taps in enumerate(size):
        at = len(shape) - len(size) + d
        start = lowerer.space.fix(index[at], lowerer.fixed).times(stride[d]).plus(-padding[d])
        windows.append(WindowDim(start.terms, start.offset, taps, dilation[d], shape[at], places[at], padding[d]))
    return tuple(windows)


def plane_of(lowerer: Lowerer, index: tuple[Index, ...], places: tuple[int, ...]) -> Index:
    """Where the plane begins that the leading dimensions of an input with these strides name."""
    plane = Index()
    for place, stride in zip(index, places, strict=False):
        plane = plane.add(lowerer.space.fix(place, lowerer.fixed).times(stride))
    return plane


def _divisor(node: Node, override: object) -> int | None:
    if override is not None and not isinstance(override, int):
        raise Unsupported(f"no recipe covers {node.op} with this divisor", line=node.line)
    return override


def _pooled(lowerer: Lowerer, node: Node, pooling: _Pooling, index: tuple[Index, ...]) -> Expr:
    taps = math.prod(window.taps for window in pooling.windows)
    if taps > MOST_TAPS:
        raise Unsupported(f"no recipe covers {node.op} over windows of {taps} elements", line=node.line)
    given = input_of(lowerer, source(node))
    if given is None:
        return _computed(lowerer, node, pooling, index)
    load = lowerer.builder.load(given.name, given.spec.dtype, lowerer.strides(pooling.plane), 0)
    return pooling.of(lowerer, load)


def _computed(lowerer: Lowerer, node: Node, pooling: _Pooling, index: tuple[Index, ...]) -> Expr:
    """A window of what is computed, element by element, of one tensor and of what is the same all over a plane."""
    windows = pooling.windows
    within = tuple(Index(((WINDOW + d, 1),)) for d in range(len(windows)))
    element = lowerer.value(source(node), (*index[: len(index) - len(windows)], *within))
    loads = tuple(e for e in walk((element,)) if isinstance(e, Load))
    elements = tuple(load for load in loads if load.windowed)
    simple = all(isinstance(e, Load | Op | Const) for e in walk((element,)))
    own = _as_stored(pooling, elements[0]) if simple and len(elements) == 1 else None
    if own is None:
        raise Unsupported(f"no recipe covers {node.op} of a computed tensor", line=node.line)
    needed = tuple(load for load in loads if not load.windowed)
    return own.of(lowerer, elements[0], element=element, needed=needed)


def _as_stored(pooling: _Pooling, element: Load) -> _Pooling | None:
    """The windows and their plane as they lie in the tensor that `element` is of; None where it has no windows."""
    strides = iter(element.windowed)  # a dimension of one element leaves no trace
    if len(element.windowed) < len(pooling.windows):
        traced = [w.size > 1 for w in pooling.windows]
    else:
        traced = [True for _ in pooling.windows]
    if sum(traced) != len(element.windowed):
        return None
    windows = [replace(w, stride=next(strides)) if t else w for w, t in zip(pooling.windows, traced, strict=True)]
    terms = tuple((k, stride) for k, stride in enumerate(element.strides) if stride)
    return replace(pooling, windows=tuple(windows), plane=Index(terms, element.offset))


def is_windowed(graph: Graph, name: str) -> bool:
    """Whether windows are all that is read of an input: their planes' places are counted in 64 bits."""
    names = {name}
    for node in graph.nodes:
        reads = [ref.name for ref in node.args if isinstance(ref, Ref)]
        if node.op.split(".")[1] in RESHAPES and names & set(reads):
            names.add(node.name)
        elif names & set(reads) and (reads[0] not in names or node.op.split(".")[1] not in (*POOLS, "convolution")):
            return False
    return not names & {ref.name for ref in graph.outputs}


def input_of(lowerer: Lowerer, ref: Ref) -> GraphInput | None:
    """The graph input that a value is another shape of."""
    while ref.name in lowerer.nodes and lowerer.nodes[ref.name].op.split(".")[1] in RESHAPES:
        ref = source(lowerer.nodes[ref.name])
    return lowerer.inputs.get(ref.name)


POOLS: dict[str, Emit] = {
    **{f"max_pool{d}d_with_indices": _pool("max", d) for d in (2, 3)},
    **{f"avg_pool{d}d": _pool("mean", d) for d in (1, 2, 3)},
}
