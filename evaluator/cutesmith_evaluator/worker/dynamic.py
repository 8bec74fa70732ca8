"""Which sizes of the arguments may change without changing the graph.

A group of dimensions is free when the module, traced again with all of them one larger and then twice as large, calls
the same ops with the same arguments. Only shapes (arguments named `size`, `shape` or `normalized_shape`) and the end of
`arange` may differ. A scalar taken from a shape (`x / x.shape[-1]`) or a cut that moves with it (`chunk`, `x[:n]`)
binds the dimension: one graph could not say how it moves.

Groups are tried from fine to coarse: each dimension alone; then those left over that have the same index and the same
size; then those left over of the same size anywhere. These traces compare the ops as the user's code calls them. The
groups found are then changed together, each by a factor of its own, and the decomposed graphs are compared; when they
differ, each group has to pass that alone, and when they still differ together, only the first counts. No more than
`MAX_TRACES` traces are made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, fx
from torch._ops import OpOverload

from cutesmith_evaluator.types import Arg, Ref
from cutesmith_evaluator.worker.arguments import as_arg
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.tracing import Subject, Trace, decomposed, export, faking

MAX_TRACES = 40
Dim = tuple[int, int]  # argument position, dimension
Group = tuple[Dim, ...]
_SHAPE = "a shape"
_CUTS = {torch.ops.aten.chunk.default, torch.ops.aten.tensor_split.sections}  # into parts, whatever their sizes


def dynamic_dims(subject: Subject, traced: Trace) -> tuple[Group, ...]:
    """`traced`: the trace at the subject's own sizes."""
    search = _Search(subject, _skeleton(traced.exported.graph))
    free: list[Group] = []
    for grouping in (_alone, _by_index_and_size, _by_size):
        left = [dim for dim in _dims(subject) if not any(dim in group for group in free)]
        free += [group for group in grouping(subject, left) if search.is_free(group)]
    free.sort()
    if not free or search.stays(free, traced):
        return tuple(free)
    free = [group for group in free if search.stays([group], traced)]
    return tuple(free if search.stays(free, traced) else free[:1])


def _dims(subject: Subject) -> list[Dim]:
    """Dimensions of dense tensor arguments; a size of 0 is left alone."""
    return [
        (position, dim)
        for position, value in enumerate(subject.arguments)
        if isinstance(value, Tensor) and _stride_order(value) is not None
        for dim in range(value.dim())
        if value.shape[dim] > 0
    ]


def _size(subject: Subject, dim: Dim) -> int:
    value = subject.arguments[dim[0]]
    assert isinstance(value, Tensor)
    return value.shape[dim[1]]


def _alone(subject: Subject, dims: list[Dim]) -> list[Group]:
    return [(dim,) for dim in dims]


def _by_index_and_size(subject: Subject, dims: list[Dim]) -> list[Group]:
    return _grouped({dim: (dim[1], _size(subject, dim)) for dim in dims})


def _by_size(subject: Subject, dims: list[Dim]) -> list[Group]:
    return _grouped({dim: _size(subject, dim) for dim in dims})


def _grouped(keys: dict[Dim, Hashable]) -> list[Group]:
    groups: dict[Hashable, list[Dim]] = defaultdict(list)
    for dim, key in keys.items():
        groups[key].append(dim)
    return [tuple(group) for group in groups.values() if len(group) > 1]


@dataclass
class _Search:
    subject: Subject
    skeleton: Hashable  # at the subject's own sizes
    traces: int = 0
    failed: set[Group] = field(default_factory=set)

    def is_free(self, group: Group) -> bool:
        if group in self.failed:
            return False
        free = all(self._holds(dict.fromkeys(group, change)) for change in (1, 2))
        if not free:
            self.failed.add(group)
        return free

    def stays(self, groups: list[Group], traced: Trace) -> bool:
        """Whether the decomposed graph stays when every group gets a factor of its own."""
        changes = {dim: 2 + number for number, group in enumerate(groups) for dim in group}
        try:
            program = decomposed(export(self.subject, self._changed(changes)), self.subject)
        except TaskError:
            return False
        return _skeleton(program.graph) == _skeleton(traced.program.graph)

    def _holds(self, changes: dict[Dim, int]) -> bool:
        self.traces += 1
        if self.traces > MAX_TRACES:
            return False
        try:
            return _skeleton(export(self.subject, self._changed(changes)).graph) == self.skeleton
        except TaskError:
            return False

    def _changed(self, changes: dict[Dim, int]) -> tuple[object, ...]:
        """The arguments with sizes changed: by 1 to one more, by k > 1 to k times as much."""
        return tuple(
            _resized(value, {dim: change for (at, dim), change in changes.items() if at == position}, self.subject)
            for position, value in enumerate(self.subject.arguments)
        )


def _resized(value: object, changes: dict[int, int], subject: Subject) -> object:
    if not changes or not isinstance(value, Tensor):
        return value
    sizes = [_changed(size, changes.get(dim)) for dim, size in enumerate(value.shape)]
    order = _stride_order(value)
    assert order is not None
    with faking(subject.mode):
        dense = torch.empty([sizes[dim] for dim in order], dtype=value.dtype, device=value.device)
        return dense.permute([order.index(dim) for dim in range(value.dim())])


def _changed(size: int, change: int | None) -> int:
    if change is None:
        return size
    return size + 1 if change == 1 else size * change


def _stride_order(value: Tensor) -> list[int] | None:
    """Dimensions from the slowest to the fastest, or None when elements are skipped or shared."""
    order = sorted(range(value.dim()), key=lambda dim: (-value.stride(dim), dim))
    step = 1
    for dim in reversed(order):
        if value.shape[dim] != 1 and value.stride(dim) != step:
            return None
        step *= value.shape[dim]
    return order


def _skeleton(graph: fx.Graph) -> Hashable:
    """What must not change. Nodes count by their place: torch numbers their names as it goes."""
    places = {node: Ref("", place) for place, node in enumerate(graph.nodes)}
    return tuple(
        (str(node.target), _fixed(node, places), _kind(node)) for node in graph.nodes if node.op != "placeholder"
    )


def _kind(node: fx.Node) -> Hashable:
    values = node.meta.get("val")
    values = values if isinstance(values, list | tuple) else (values,)
    cut = _named_arguments(node).get("dim", 0) if node.target in _CUTS else None
    return tuple(_tensor_kind(value, cut) if isinstance(value, Tensor) else None for value in values)


def _tensor_kind(value: Tensor, cut: object) -> Hashable:
    return (value.dtype, value.dim(), value.shape[cut] if isinstance(cut, int) else None)


def _fixed(node: fx.Node, places: dict[fx.Node, Ref]) -> Hashable:
    named = _named_arguments(node)
    fixed = {name: as_arg(value, places.__getitem__) for name, value in named.items()}
    return tuple((name, _SHAPE if _is_shape(node, name, value) else _typed(value)) for name, value in fixed.items())


def _named_arguments(node: fx.Node) -> Mapping[str, object]:
    if not isinstance(node.target, OpOverload):
        return {str(place): value for place, value in enumerate(node.args)} | node.kwargs
    formals = [formal.name for formal in node.target._schema.arguments]
    return dict(zip(formals, node.args, strict=False)) | node.kwargs


def _is_shape(node: fx.Node, name: str, value: Arg) -> bool:
    is_bound = name == "end" and "arange" in str(node.target)
    return (is_bound or name in ("size", "shape", "normalized_shape")) and _is_integers(value)


def _is_integers(value: Arg) -> bool:
    return all(map(_is_integers, value)) if isinstance(value, tuple) else isinstance(value, int)


def _typed(value: Arg) -> Hashable:
    """1, 1.0 and True are different arguments."""
    return tuple(map(_typed, value)) if isinstance(value, tuple) else (type(value), value)
