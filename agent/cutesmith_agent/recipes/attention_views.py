"""How an attention kernel sees its tensors: queries, keys, values and results as (line, column, batch).

Scores and results are lowered on their own. What both index are the weights, which softmax gives: each of their
dimensions is cut where either of the two needs it, and is then the queries', the keys', or one of the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from cutesmith_evaluator.types import Graph

from .accesses import Access, Tensors, camel, names_of, tensors_of
from .attention_graph import Attention, attention_of
from .contract import Unsupported
from .contraction import Contraction, product_in
from .ir import Const, Expr, Load, Op, Reduce, walk
from .layout import ITEMSIZE, Modes, coalesce
from .lowering import Program, Store, lower
from .text import loads_of


@dataclass(frozen=True)
class Dim:
    """A part of a dimension of the weights, and its stride in them."""

    size: int
    stride: int


@dataclass(frozen=True)
class View:
    """A tensor as the kernel sees it: strides from line to line (query to query, key to key) and column to column."""

    access: Access
    line: int
    column: int
    batch: Modes

    @property
    def alone(self) -> View:
        """Each matrix once, where several heads share it."""
        return replace(self, batch=Modes(tuple(pair for pair in self.batch.pairs if pair[1]) or ((1, 0),)))

    @property
    def place(self) -> str:
        """Which of the matrices of `alone` the kernel's `batch` reads, as text."""
        own, pairs = 1, []
        for size, stride in self.batch.pairs:
            pairs.append((size, own if stride else 0))
            own *= size if stride else 1
        if self.alone.batch == self.batch:
            return "batch"
        shape, strides = (tuple(pair[k] for pair in pairs) for k in range(2))
        return f"cute.crd2idx(batch, cute.make_layout({shape}, stride={strides}))"

    def has_wide_lines(self, columns: int) -> bool:
        """Whether lines are of whole accesses of 16 bytes, where the tensor starts at a multiple of 16."""
        at = (columns, self.line, self.access.offset, *(stride for _, stride in self.batch.pairs))
        return self.column == 1 and not any(each * ITEMSIZE[self.access.dtype] % 16 for each in at)


@dataclass(frozen=True)
class Views:
    """An attention and its tensors. Sizes as traced: `depth` of a query and a key, `width` of a value."""

    graph: Graph
    attention: Attention
    scores: Program
    product: Contraction
    queries: View
    keys: View
    values: View
    result: View
    masks: tuple[View, ...]  # what scores are computed from besides, as (query, key, batch)
    tensors: Tensors
    query_count: int
    key_count: int
    depth: int
    width: int
    batches: int

    @property
    def dtype(self) -> str:
        """Of queries, keys and values."""
        return self.queries.access.dtype

    @property
    def is_split(self) -> bool:
        return self.dtype == "float32"

    @property
    def score(self) -> Expr:
        return self.scores.stores[0].expr


def views_of(graph: Graph) -> Views | None:
    """The graph as one attention, or None where it has none. Raises `Unsupported` where it has more than one."""
    found = attention_of(graph)
    if found is None:
        return None
    scores, results = lower(found.scores, wide=True), lower(found.results, wide=True)
    inner, outer = _product(scores, alone=False), _product(results, alone=True)
    weights = next((load for load in (outer.left, outer.right) if load.name == found.weights.name), None)
    if weights is None:
        raise Unsupported("no recipe covers what is computed from a softmax here")
    values = outer.right if weights is outer.left else outer.left
    dtypes = {load.dtype for load in (inner.left, inner.right, values)}
    if len(dtypes) > 1:
        raise Unsupported(f"no recipe covers attention over tensors of {' and '.join(sorted(dtypes))}")
    return _Meeting(
        graph, found, _Side(scores, scores.stores[0].strides), inner, _Side(results, weights.strides), values
    ).views()


def _product(program: Program, *, alone: bool) -> Contraction:
    """The one product of the program; `alone`: nothing follows it."""
    store = program.stores[0]
    inside = list(walk((store.expr,)))
    sums = [e for e in inside if isinstance(e, Reduce)]
    others = [e for e in inside if not isinstance(e, Const | Load | Op | Reduce)]
    found = product_in(program, sums[0]) if len(sums) == len(program.stores) == 1 and not others else None
    if found is None or (alone and store.expr is not found.total):
        raise Unsupported("no recipe covers what is computed around a softmax here")
    return found


@dataclass(frozen=True)
class _Side:
    """A program, and the weights' strides by its factors."""

    program: Program
    strides: tuple[int, ...]

    def dims(self) -> list[Dim]:
        """Innermost first."""
        pairs = zip(self.program.sizes, self.strides, strict=True)
        return sorted((Dim(n, s) for n, s in pairs if n > 1 and s), key=lambda dim: dim.stride)

    def stride(self, at: Load | Store, dim: Dim) -> int:
        """From one element to the next along a dimension of the weights."""
        for k, (size, stride) in enumerate(zip(self.program.sizes, self.strides, strict=True)):
            if dim.size > 1 and stride and stride <= dim.stride < stride * size:
                return at.strides[k] * (dim.stride // stride)
        return 0

    def modes(self, at: Load | Store, dims: list[Dim]) -> Modes:
        """`dims`: innermost first."""
        return coalesce([dim.size for dim in reversed(dims)], [self.stride(at, dim) for dim in reversed(dims)])


@dataclass(frozen=True)
class _Meeting:
    """Scores and results, which meet in the weights."""

    graph: Graph
    attention: Attention
    scores: _Side
    product: Contraction
    results: _Side
    values: Load

    def views(self) -> Views:
        """Raises Unsupported where dimensions are not those of an attention."""
        count = self.attention.weights.spec.shape[-1]
        dims = self._joined(_common(self.scores.dims(), self.results.dims()))
        key = _only([dim for dim in dims if dim.stride < count], Dim(1, 1))
        query = next((dim for dim in dims if dim.stride == count and self._is_of_queries(dim)), Dim(1, count))
        batch = [dim for dim in dims if dim.stride >= count and dim is not query]
        queries, keys = self.product.left, self.product.right
        if self.scores.stride(queries, key):
            queries, keys = keys, queries
        if self.scores.stride(queries, key) or self.scores.stride(keys, query):
            raise Unsupported("no recipe covers attention whose queries depend on keys")
        if self.attention.diagonal is not None and query.size != self.attention.weights.spec.shape[-2]:
            raise Unsupported("no recipe covers causal attention whose queries lie in pieces")
        tensors = self._tensors()
        accesses = {id(access.load): access for access in tensors.loads}

        def of_scores(load: Load, line: Dim, column: int) -> View:
            return View(accesses[id(load)], self.scores.stride(load, line), column, self.scores.modes(load, batch))

        store = self.results.program.stores[0]
        modes = self.results.modes
        own = (queries, keys, self.values)
        return Views(
            graph=self.graph,
            attention=self.attention,
            scores=self.scores.program,
            product=self.product,
            queries=of_scores(queries, query, self._depth_stride(queries)),
            keys=of_scores(keys, key, self._depth_stride(keys)),
            values=View(
                accesses[id(self.values)],
                self.results.stride(self.values, key),
                self._width(self.values).inner[1],
                modes(self.values, batch),
            ),
            result=View(
                tensors.stores[0], self.results.stride(store, query), self._width(store).inner[1], modes(store, batch)
            ),
            masks=tuple(
                of_scores(a.load, query, self.scores.stride(a.load, key))
                for a in tensors.loads
                if a.load and a.load not in own
            ),
            tensors=tensors,
            query_count=query.size,
            key_count=count,
            depth=self.product.size(self.scores.program, self.product.depth),
            width=self._width(store).inner[0],
            batches=math.prod(dim.size for dim in batch),
        )

    def _joined(self, dims: list[Dim]) -> list[Dim]:
        """Dimensions, innermost first, that each tensor goes through as one; a causal mask counts a head's queries."""
        count, keys = self.attention.weights.spec.shape[-2:]
        ends = {keys} | ({keys * count} if self.attention.diagonal is not None else set())
        joined: list[Dim] = []
        for dim in dims:
            if joined and dim.stride not in ends and self._follows(joined[-1], dim):
                joined[-1] = Dim(joined[-1].size * dim.size, joined[-1].stride)
            else:
                joined.append(dim)
        return joined

    def _follows(self, inner: Dim, outer: Dim) -> bool:
        """Whether every tensor has the outer dimension's next element where the inner one ends."""
        of_scores = [(self.scores, load) for load in loads_of((self.scores.program.stores[0].expr,))]
        of_results = [(self.results, at) for at in (self.values, self.results.program.stores[0])]
        return all(
            side.stride(at, outer) == side.stride(at, inner) * inner.size for side, at in (*of_scores, *of_results)
        )

    def _is_of_queries(self, dim: Dim) -> bool:
        """Whether one side of the product alone, and no value, depends on the dimension."""
        of_scores = [self.scores.stride(load, dim) for load in (self.product.left, self.product.right)]
        return 0 in of_scores and not self.results.stride(self.values, dim)

    def _depth_stride(self, load: Load) -> int:
        modes = self.product.modes(self.scores.program, load.strides, self.product.depth)
        return _single(modes).inner[1]

    def _width(self, at: Load | Store) -> Modes:
        """The columns of values and results."""
        program, strides = self.results.program, self.results.strides
        own = [k for k in range(program.row_factors) if not strides[k]]
        return _single(coalesce([program.sizes[k] for k in own], [at.strides[k] for k in own]))

    def _tensors(self) -> Tensors:
        """Those of both programs, under common names."""
        loads = loads_of((self.scores.program.stores[0].expr,))
        one = tensors_of(self.scores.program, loads)
        other = tensors_of(self.results.program, (self.values,))
        inputs = tuple(i for i in self.graph.inputs if i in (*one.inputs, *other.inputs))
        inputs = tuple(sorted(inputs, key=lambda i: i.position is None))
        names = names_of(inputs)
        outputs = tuple(f"{out}_out" if out in names.values() else out for out in ("y",))
        named = tuple(
            replace(a, param=f"m{camel(names[a.load.name])}") for a in (*one.loads, *other.loads) if a.load is not None
        )
        stores = tuple(replace(a, param=f"m{camel(outputs[0])}") for a in other.stores)
        return Tensors(inputs, names, outputs, named, stores)


def _common(one: list[Dim], other: list[Dim]) -> list[Dim]:
    """Dimensions, innermost first, of which those of both lists are made."""
    cuts = sorted({at for dim in (*one, *other) for at in (dim.stride, dim.stride * dim.size)})
    if any(high % low for low, high in pairwise(cuts)):
        raise Unsupported("no recipe covers attention whose heads do not line up")
    return [Dim(high // low, low) for low, high in pairwise(cuts)]


def _only(dims: list[Dim], otherwise: Dim) -> Dim:
    if len(dims) > 1:
        raise Unsupported("no recipe covers attention over keys of several dimensions")
    return dims[0] if dims else otherwise


def _single(modes: Modes) -> Modes:
    if len(modes.pairs) > 1:
        raise Unsupported("no recipe covers attention over elements of several dimensions")
    return modes
