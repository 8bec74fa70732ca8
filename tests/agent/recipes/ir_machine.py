"""Runs a lowered program on CPU tensors in float64: what the expressions mean, apart from any kernel text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch

from cutesmith_agent.recipes.geometry import output_spec
from cutesmith_agent.recipes.ir import Const, Expr, Load, Op, Pick, Pool, Reduce, Scan, Total, WindowDim, walk
from cutesmith_agent.recipes.lowering import Program

BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "atan2": torch.atan2,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "eq": torch.eq,
    "ne": torch.ne,
    "and": torch.logical_and,
    "or": torch.logical_or,
}
REDUCE = {
    "sum": lambda x: x.sum(-1, keepdim=True),
    "prod": lambda x: x.prod(-1, keepdim=True),
    "max": lambda x: x.amax(-1, keepdim=True),
    "min": lambda x: x.amin(-1, keepdim=True),
    "argmax": lambda x: x.argmax(-1, keepdim=True).double(),
    "argmin": lambda x: x.argmin(-1, keepdim=True).double(),
}


def run(program: Program, tensors: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The program's outputs in float64, given its graph inputs by name."""
    places = _places(program)
    outputs = []
    for ref in program.graph.outputs:
        spec = output_spec(program.graph, ref)
        outputs.append(torch.full((math.prod(spec.shape),), float("nan"), dtype=torch.float64))
    values: dict[int, torch.Tensor] = {}
    for e in walk(tuple(s.expr for s in program.stores)):
        values[id(e)] = _value(e, values, places, tensors)
    for store in program.stores:
        at = _flat(places, store.strides, store.offset)
        result = values[id(store.expr)].double().expand(at.shape)
        at, result = (at, result) if store.per_column else (at[:, :1], result[:, :1])
        outputs[store.output][at] = result
    shapes = (output_spec(program.graph, ref).shape for ref in program.graph.outputs)
    return [o.view(shape) for o, shape in zip(outputs, shapes, strict=True)]


def _places(program: Program) -> list[torch.Tensor]:
    """The value of each factor at every (row, column)."""
    grid = torch.arange(program.rows * program.columns).view(program.rows, program.columns)
    places = []
    for k in range(len(program.sizes)):
        places.append(grid // math.prod(program.sizes[k + 1 :]) % program.sizes[k])
    return places


def _flat(places: list[torch.Tensor], strides: tuple[int, ...], offset: int) -> torch.Tensor:
    return sum((p * s for p, s in zip(places, strides, strict=True)), torch.full_like(places[0], offset))


def _value(
    e: Expr, values: dict[int, torch.Tensor], places: list[torch.Tensor], tensors: dict[str, torch.Tensor]
) -> torch.Tensor:
    if isinstance(e, Const):
        return torch.full((1, 1), e.value, dtype=torch.float64)
    if isinstance(e, Load):
        return tensors[e.name].double().flatten()[_flat(places, e.strides, e.offset)]
    if isinstance(e, Pick):
        assert e.load.picked is not None
        at = _flat(places, e.load.strides, e.load.offset) + values[id(e.index)].long() * e.load.picked[1]
        return tensors[e.load.name].double().flatten()[at]
    if isinstance(e, Total):
        return REDUCE[e.kind](values[id(e.arg)].expand(places[0].shape)[:, :1].T)
    if isinstance(e, Pool):
        weight = None if e.weight is None else tensors[e.weight.name].double().flatten()

        def taken(x: torch.Tensor) -> torch.Tensor:
            return x if e.element is None else _element(e.element, {id(e.load): x}, places, tensors)

        return _pool(e, places, tensors[e.load.name].double().flatten(), weight, taken)
    if isinstance(e, Reduce):
        return REDUCE[e.kind](values[id(e.arg)].expand(places[0].shape))
    if isinstance(e, Scan):
        return _scan(e, values[id(e.arg)].expand(places[0].shape))
    assert isinstance(e, Op)
    args = [values[id(a)] for a in e.args]
    if e.name == "where":
        return torch.where(*args)
    if e.name == "not":
        return torch.logical_not(args[0])
    return BINARY[e.name](*args) if e.name in BINARY else getattr(torch, e.name)(*args)


def _scan(e: Scan, x: torch.Tensor) -> torch.Tensor:
    x = x.flip(-1) if e.reverse else x
    neutral = 0.0 if e.kind == "sum" else 1.0
    if e.exclusive:
        x = torch.cat([torch.full_like(x[:, :1], neutral), x[:, :-1]], -1)
    x = x.cumsum(-1) if e.kind == "sum" else x.cumprod(-1)
    return x.flip(-1) if e.reverse else x


def _element(
    root: Expr, known: dict[int, torch.Tensor], places: list[torch.Tensor], tensors: dict[str, torch.Tensor]
) -> torch.Tensor:
    """What a window takes of an element, given the element's value."""
    for e in walk((root,)):
        if id(e) not in known:
            known[id(e)] = _value(e, known, places, tensors)
    return known[id(root)]


def _pool(
    e: Pool,
    places: list[torch.Tensor],
    x: torch.Tensor,
    weight: torch.Tensor | None,
    taken: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    plane = _affine(places, e.terms, e.offset)
    result = torch.full(plane.shape, -math.inf if e.kind == "max" else 0.0, dtype=torch.float64)
    for number, taps in enumerate(itertools.product(*(range(w.taps) for w in e.windows))):
        at, inside = plane, torch.ones_like(plane, dtype=torch.bool)
        for tap, w in zip(taps, e.windows, strict=True):
            here = _affine(places, w.terms, w.offset) + tap * w.dilation
            inside = inside & (here >= 0) & (here < w.size)
            at = at + here.clamp(0, w.size - 1) * w.stride
        value = taken(x[at])
        if e.weight is not None:
            assert weight is not None
            value = value * weight[_flat(places, e.weight.strides, number)]
        merged = torch.maximum(result, value) if e.kind == "max" else result + value
        result = torch.where(inside, merged, result)
    if e.kind != "mean":
        return result
    return result / (e.divisor or math.prod(_count(places, w, whole=e.whole) for w in e.windows))


def _count(places: list[torch.Tensor], w: WindowDim, *, whole: bool) -> torch.Tensor:
    """Places of a window that a mean counts, in one dimension."""
    first = _affine(places, w.terms, w.offset)
    last = first + w.taps
    return last.clamp(max=w.size + w.padding) - first if whole else last.clamp(max=w.size) - first.clamp(min=0)


def _affine(places: list[torch.Tensor], terms: tuple[tuple[int, int], ...], offset: int) -> torch.Tensor:
    return sum((places[k] * c for k, c in terms), torch.full_like(places[0], offset))
