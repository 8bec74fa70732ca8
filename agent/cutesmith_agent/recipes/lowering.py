"""From a graph of aten ops to expressions: pointwise chains, views, cats and row reductions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from cutesmith_evaluator.types import Arg, Graph, GraphInput, Node, Ref, TensorSpec

from .aten import POINTWISE
from .channel_norms import CHANNEL_OPS
from .contract import Unsupported
from .convolutions import CONVOLUTIONS
from .gathers import INDEXED, is_index
from .geometry import Geometry, geometry, short_name
from .ir import Builder, Expr, Total, walk
from .library import BIASED, is_result
from .pools import POOLS, is_windowed
from .products import PRODUCTS
from .reductions import REDUCTIONS
from .scans import with_exclusive_scans
from .space import PICKED, WINDOW, Index, Refine, Space, contiguous, stored_strides, unravel
from .views import VIEWS

FLOATS = ("float32", "float16", "bfloat16")
OTHERS = CHANNEL_OPS | POOLS | CONVOLUTIONS | INDEXED | BIASED | PRODUCTS
MAX_PIECES = 8  # stores that one thread makes for one output


@dataclass(frozen=True)
class Store:
    """One piece of an output: expression and where it goes, strides per factor of the space."""

    output: int
    expr: Expr
    strides: tuple[int, ...]
    offset: int
    per_column: bool


@dataclass(frozen=True)
class Program:
    """What a kernel must compute. `sizes`: the space's factors, unrolled ones as 1; rows first, then columns."""

    graph: Graph
    sizes: tuple[int, ...]
    row_factors: int
    dims: tuple[tuple[int, ...], ...]  # factor ids of each root dimension
    stores: tuple[Store, ...]

    @property
    def columns(self) -> int:
        return math.prod(self.sizes[self.row_factors :])

    @property
    def has_reductions(self) -> bool:
        return any(s.expr.level for s in self.stores)

    @property
    def rows(self) -> int:
        return math.prod(self.sizes[: self.row_factors])


@dataclass
class Lowerer:
    """One lowering attempt over a fixed space."""

    graph: Graph
    space: Space
    geometry: Geometry
    fixed: dict[int, int] = field(default_factory=dict)  # unrolled factors of this piece
    builder: Builder = field(default_factory=Builder)
    memo: dict[tuple[object, ...], Expr] = field(default_factory=dict)
    places: list[tuple[int, Expr]] = field(default_factory=list)  # what `place` was asked for: sizes and values

    def __post_init__(self) -> None:
        self.nodes = {n.name: n for n in self.graph.nodes}
        self.inputs = {i.name: i for i in self.graph.inputs}

    @property
    def columns(self) -> tuple[int, ...]:
        """Sizes of the reduced dimensions."""
        return self.geometry.columns

    def spec(self, ref: Ref) -> TensorSpec:
        if ref.name in self.inputs:
            return self.inputs[ref.name].spec
        return self.nodes[ref.name].outputs[ref.index]

    def value(self, ref: Ref, index: tuple[Index, ...]) -> Expr:
        """Element `index` of a graph value."""
        key = (ref, index)
        if key not in self.memo:
            if ref.name in self.inputs:
                self.memo[key] = self._load(self.inputs[ref.name], index)
            else:
                self.memo[key] = self._node(self.nodes[ref.name], ref.index, index)
        return self.memo[key]

    def operand(self, arg: Arg, index: tuple[Index, ...]) -> object:
        """An argument of a pointwise op at the op's output index, broadcast as PyTorch does."""
        if not isinstance(arg, Ref):
            return arg
        shape = self.spec(arg).shape
        own = index[len(index) - len(shape) :]
        return self.value(arg, tuple(Index() if n == 1 else i for n, i in zip(shape, own, strict=True)))

    def column_index(self, dim: int) -> Index:
        return self.space.fix(self.space.index(self.space.row_dims + dim), self.fixed)

    def is_row_index(self, index: Index) -> bool:
        return all(k < self.space.row_factors for k, _ in index.terms)

    def _load(self, source: GraphInput, index: tuple[Index, ...]) -> Expr:
        total = Index()
        for i, stride in zip(index, source.spec.strides, strict=True):
            total = total.add(self.space.fix(i, self.fixed).times(stride))
        coefficients = dict(total.terms)
        strides = tuple(coefficients.get(k, 0) for k in range(len(self.space.factors)))
        within = tuple(coefficients[k] for k in sorted(coefficients) if k >= WINDOW)
        if within:
            return self.builder.load(source.name, source.spec.dtype, strides, total.offset, None, within)
        chosen = [k for k in coefficients if k >= PICKED]
        if chosen:
            return self._pick(source, strides, total.offset, chosen, coefficients)
        load = self.builder.load(source.name, source.spec.dtype, strides, total.offset)
        if source.spec.dtype == "bool":
            return self.builder.op("ne", load, self.builder.const(0.0))
        return load

    def strides(self, index: Index) -> tuple[int, ...]:
        """Those of a load at this index, by the space's factors."""
        coefficients = dict(self.space.fix(index, self.fixed).terms)
        return tuple(coefficients.get(k, 0) for k in range(len(self.space.factors)))

    def place(self, size: int, index: Expr) -> Index:
        """An index that is the value of `index`, kept within a dimension of this size."""
        self.places.append((size, POINTWISE["clamp"](self.builder, index, 0, size - 1)))
        return Index(((PICKED + len(self.places) - 1, 1),))

    def _pick(
        self, source: GraphInput, strides: tuple[int, ...], offset: int, chosen: list[int], by: dict[int, int]
    ) -> Expr:
        if len(chosen) > 1 or source.spec.dtype not in FLOATS:
            raise Unsupported(f"no recipe covers several indices into {source.name}")
        size, index = self.places[chosen[0] - PICKED]
        load = self.builder.load(source.name, source.spec.dtype, strides, offset, (size, by[chosen[0]]))
        if load.per_column:
            raise Unsupported(f"no recipe covers an index into {source.name} that chooses more than one element")
        return self.builder.pick(load, index)

    def _node(self, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
        name = short_name(node.op)
        if name in VIEWS:
            return VIEWS[name](self, node, output, index)
        if name in REDUCTIONS:
            return REDUCTIONS[name](self, node, output, index)
        if name in OTHERS:
            return OTHERS[name](self, node, output, index)
        if name in POINTWISE and output == 0:
            args = [self.operand(a, index) for a in node.args]
            kwargs = {
                k: self.operand(v, index) for k, v in node.kwargs.items() if k in ("alpha", "value", "approximate")
            }
            return self._emit(POINTWISE[name], node, args, kwargs)
        raise Unsupported(f"no recipe covers {node.op}", line=node.line)

    def _emit(self, emit: Callable[..., Expr], node: Node, args: list[object], kwargs: dict[str, object]) -> Expr:
        if args and not isinstance(args[0], Expr) and isinstance(args[0], bool | int | float):
            args[0] = self.builder.const(float(args[0]))
        try:
            return emit(self.builder, *args, **kwargs)
        except TypeError as error:
            raise Unsupported(f"no recipe covers {node.op} with these arguments ({error})", line=node.line) from error


def lower(graph: Graph, *, wide: bool = False) -> Program:
    """Expressions for every output, or `Unsupported` naming the op. `wide`: of a part of a kernel, which stores none of
    what lies between; rows are those of the output."""
    graph = with_exclusive_scans(graph)
    _check_dtypes(graph, wide=wide)
    shape = geometry(graph, of_output=wide)
    space = shape.space
    for _ in range(32):
        try:
            return _lower_in(graph, space, shape)
        except Refine as request:
            space = space.refine(request)
        except ValueError as error:
            raise Unsupported(f"no recipe covers a reshape with {error}") from error
    raise Unsupported("no recipe covers a chain of this many reshapes")


def _check_dtypes(graph: Graph, *, wide: bool) -> None:
    for i in graph.inputs:
        if i.spec.dtype not in (*FLOATS, "bool") and not (i.spec.dtype == "int64" and is_index(graph, i.name)):
            raise Unsupported(
                f"input {i.name} is {i.spec.dtype}: the recipes cover float32, float16, bfloat16, bool masks and "
                "int64 indices into rows"
            )
        if contiguous(i.spec.shape) != i.spec.strides and math.prod(i.spec.shape) > 1 and not is_result(i):
            raise Unsupported(f"input {i.name} is not contiguous: the recipes cover contiguous tensors")
        if math.prod(i.spec.shape) >= 2**31 and not (is_windowed(graph, i.name) or (wide and is_result(i))):
            raise Unsupported(f"input {i.name} has 2**31 elements or more: the recipes index with 32 bits")
        if 0 in i.spec.shape:
            raise Unsupported(f"input {i.name} has no elements: there is nothing to compute")
    for n in graph.nodes:
        for out in n.outputs:
            if out.dtype not in (*FLOATS, "bool", "int64"):
                raise Unsupported(f"no recipe covers {n.op} in {out.dtype}", line=n.line)
            if math.prod(out.shape) >= 2**31 and not wide:
                raise Unsupported(f"{n.op} has 2**31 results or more: the recipes index with 32 bits", line=n.line)
    if not graph.outputs:
        raise Unsupported("forward returns no tensor")
    if all(math.prod(i.spec.shape) == 1 for i in graph.inputs):
        raise Unsupported("forward works on single elements: a kernel has nothing to gain there")


def _lower_in(graph: Graph, space: Space, shape: Geometry) -> Program:
    unrolled = [k for k, f in enumerate(space.factors) if f.unrolled]
    pieces = list(itertools.product(*(range(space.factors[k].size) for k in unrolled)))
    if len(pieces) > MAX_PIECES:
        raise Unsupported(f"no recipe covers a cat or slice into {len(pieces)} pieces")
    builder = Builder(frozenset(range(space.row_factors, len(space.factors))))
    stores = []
    for piece in pieces:
        lowerer = Lowerer(graph, space, shape, dict(zip(unrolled, piece, strict=True)), builder)
        for number, ref in enumerate(graph.outputs):
            stores += _stores(lowerer, number, ref, first=not any(piece))
    sizes = tuple(1 if f.unrolled else f.size for f in space.factors)
    ids = iter(range(len(sizes)))
    dims = tuple(tuple(next(ids) for _ in dim) for dim in space.dims)
    return Program(graph, sizes, space.row_factors, dims, tuple(stores))


def _stores(lowerer: Lowerer, number: int, ref: Ref, *, first: bool) -> list[Store]:
    shape = lowerer.spec(ref).shape
    space = lowerer.space
    full = lowerer.geometry.is_full(shape)
    if math.prod(shape) == 1 < lowerer.geometry.row_count:
        return _total_store(lowerer, number, ref) if first else []
    flat = Index()
    dims = lowerer.geometry.order if full else range(space.row_dims)
    for d in dims:
        size = math.prod(f.size for f in space.dims[d])
        flat = flat.times(size).add(space.index(d))
    if math.prod(shape) != math.prod(math.prod(f.size for f in space.dims[d]) for d in dims):
        raise Unsupported("no recipe covers outputs of unrelated shapes in one kernel")
    index = unravel(space, flat, shape)
    expr = lowerer.value(ref, index)
    if not full and expr.per_column:
        raise Unsupported("no recipe covers a result that keeps part of the reduced dimensions")
    if not full and not first:
        return []
    where = Index()
    for place, stride in zip(index, stored_strides(lowerer.spec(ref)), strict=True):
        where = where.add(space.fix(place, lowerer.fixed).times(stride))
    return [Store(number, expr, lowerer.strides(where), where.offset, full)]


def _total_store(lowerer: Lowerer, number: int, ref: Ref) -> list[Store]:
    """A single result of all rows."""
    expr = lowerer.value(ref, tuple(Index() for _ in lowerer.spec(ref).shape))
    if expr.per_column or not any(isinstance(e, Total) for e in walk((expr,))):
        raise Unsupported("no recipe covers a single result beside several rows")
    return [Store(number, expr, (0,) * len(lowerer.space.factors), 0, False)]
