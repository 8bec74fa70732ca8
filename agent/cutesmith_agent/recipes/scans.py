"""Cumulative sums and products, forward, backward and without the element itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from cutesmith_evaluator.types import Graph, Node, Ref

from .contract import Unsupported
from .ir import Expr
from .space import Index
from .views import integer, source

if TYPE_CHECKING:
    from .lowering import Lowerer

Emit = Callable[["Lowerer", Node, int, tuple[Index, ...]], Expr]
EXCLUSIVE = "exclusive_"


def _scan(kind: Literal["sum", "prod"], *, exclusive: bool) -> Emit:
    def emit(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
        sizes = node.outputs[0].shape
        dim = integer(node, 1) % len(sizes)
        column, at = lowerer.column_index(0), lowerer.space.fix(index[dim], lowerer.fixed)
        reverse = at != column
        rows = [i for d, i in enumerate(index) if d != dim]
        if lowerer.columns != (sizes[dim],) or not all(lowerer.is_row_index(i) for i in rows):
            raise Unsupported(f"no recipe covers {node.op} next to a reduction over other dimensions", line=node.line)
        if reverse and at != column.times(-1).plus(sizes[dim] - 1):
            raise Unsupported(f"no recipe covers a rearranged result of {node.op}", line=node.line)
        return lowerer.builder.scan(kind, lowerer.value(source(node), index), reverse=reverse, exclusive=exclusive)

    return emit


SCANS: dict[str, Emit] = {
    "cumsum": _scan("sum", exclusive=False),
    "cumprod": _scan("prod", exclusive=False),
    f"{EXCLUSIVE}cumsum": _scan("sum", exclusive=True),
    f"{EXCLUSIVE}cumprod": _scan("prod", exclusive=True),
}
_NEUTRAL = {"cumsum": 0, "cumprod": 1}


def with_exclusive_scans(graph: Graph) -> Graph:
    """Scans whose results move on by one place behind a neutral element, as ops of their own.

    PyTorch has none: people write a cat of zeros and a scan of all but the last, or all but the last of a scan."""
    nodes = {node.name: node for node in graph.nodes}
    found = {node.name: scan for node in graph.nodes if (scan := _exclusive(node, nodes)) is not None}
    if not found:
        return graph
    return _without_unused(replace(graph, nodes=tuple(found.get(node.name, node) for node in graph.nodes)))


def _exclusive(node: Node, nodes: dict[str, Node]) -> Node | None:
    if node.op != "aten.cat.default" or not isinstance(node.args[0], tuple) or len(node.args[0]) != 2:
        return None
    first, second = (nodes.get(part.name) if isinstance(part, Ref) else None for part in node.args[0])
    dim = integer(node, 1, 0) % len(node.outputs[0].shape)
    if first is None or second is None or first.outputs[0].shape[dim] != 1:
        return None
    cut, scan = (nodes.get(source(second).name), second) if _kind(second) else (second, _scanned(second, nodes))
    kind = _kind(scan)
    if kind is None or cut is None or scan is None or integer(scan, 1) % len(node.outputs[0].shape) != dim:
        return None
    whole = source(scan) if cut is second else source(cut)
    if not _is_all_but_last(cut, dim, node.outputs[0].shape[dim]) or not _is_full_of(first, _NEUTRAL[kind]):
        return None
    return replace(node, op=f"aten.{EXCLUSIVE}{kind}.default", args=(whole, dim), kwargs={})


def _scanned(cut: Node, nodes: dict[str, Node]) -> Node | None:
    return nodes.get(cut.args[0].name) if cut.args and isinstance(cut.args[0], Ref) else None


def _kind(node: Node | None) -> str | None:
    name = node.op.split(".")[1] if node is not None and "." in node.op else ""
    return name if name in _NEUTRAL else None


def _is_all_but_last(cut: Node, dim: int, size: int) -> bool:
    """Whether this is a slice [0 : size - 1] of something of `size` elements in `dim`."""
    if cut.op != "aten.slice.Tensor" or integer(cut, 1, 0) % len(cut.outputs[0].shape) != dim:
        return False
    start, step = cut.args[2] if len(cut.args) > 2 else 0, integer(cut, 4, 1)
    return start in (0, None) and step == 1 and cut.outputs[0].shape[dim] == size - 1


def _is_full_of(node: Node, value: int) -> bool:
    name = node.op.split(".")[1]
    if name in ("zeros", "zeros_like", "new_zeros"):
        return value == 0
    if name in ("ones", "ones_like", "new_ones"):
        return value == 1
    return name in ("full", "full_like") and node.args[1] == value


def _without_unused(graph: Graph) -> Graph:
    used = {ref.name for ref in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in used:
            kept.append(node)
            used |= {ref.name for ref in _references((*node.args, *node.kwargs.values()))}
    return replace(graph, nodes=tuple(reversed(kept)))


def _references(value: object) -> list[Ref]:
    if isinstance(value, Ref):
        return [value]
    return [ref for item in value for ref in _references(item)] if isinstance(value, tuple) else []
