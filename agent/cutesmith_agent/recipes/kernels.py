"""The kernels that may compute a graph, each with what PyTorch does before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutesmith_evaluator.types import Graph, GraphInput

from . import attention, implicit, product, turned
from .attention_graph import without_sdpa
from .attention_views import views_of as attention_views
from .contract import Target, Unsupported
from .library import Call, without_library
from .lowering import Program, lower
from .parts import Parts
from .singles import without_singles
from .space_sums import SpaceSum
from .triangles import without_triangle
from .variants import Variant, check, convolutions_of, products_of, variants, without_tensor_cores


@dataclass(frozen=True)
class Kernel:
    program: Program
    calls: tuple[Call, ...]
    variant: Variant

    @property
    def schedule(self) -> dict[str, int]:
        return {name.lower(): value for name, value, _ in self.variant.constants} | self.variant.choices

    def parts(self, earlier: tuple[Call, ...] = ()) -> Parts:
        """What a file needs of the kernel; `earlier`: kernels of the file that run before its calls."""
        variant, text = self.variant, self.variant.text
        calls = (*earlier, *self.calls)
        least = max((variant.least, *(call.least for call in calls)))
        is_as_tf32 = variant.is_as_tf32 or any(call.is_as_tf32 for call in calls)
        return Parts(
            variant.title, variant.constants, text.lines, text.tensors, variant.scratch, least, is_as_tf32, calls
        )


def kernels_of(graph: Graph, target: Target, name: str, *, alone: bool = False) -> tuple[Kernel, ...]:
    """Best guess first; `alone`: a convolution's bias may be all. Raises Unsupported where no kernel computes it."""
    graph = without_singles(graph)
    if attending := _attention(graph, target, name):
        return attending
    graph = without_sdpa(graph)
    if kept := _triangles(graph, target, name):
        return kept
    found = convolution_kernels(graph, target, name)
    rest, calls = without_library(graph, alone=alone)
    program = lower(rest)
    check(program)
    found += tuple(Kernel(program, calls, variant) for variant in variants(program, name, target))
    found += _channels_last(graph, target, name) if calls else ()
    if not found:
        raise Unsupported("no recipe covers windows of what is computed here")
    return found


def _attention(graph: Graph, target: Target, name: str) -> tuple[Kernel, ...]:
    try:
        views = attention_views(graph)
    except Unsupported:
        return ()
    if views is None:
        return ()
    program = attention.program_of(views)
    return tuple(Kernel(program, (), variant) for variant in attention.variants(views, name, target))


def _triangles(graph: Graph, target: Target, name: str) -> tuple[Kernel, ...]:
    """Kernels for a product of which a triangle is kept: tiles without a part of it are not computed."""
    found = without_triangle(graph)
    if found is None:
        return ()
    program = lower(found[0])
    views = product.views_of(program)
    if views is None or not views.is_plain:
        return ()
    kept = replace(views, triangle=found[1])
    return tuple(Kernel(program, (), variant) for variant in products_of(kept, name, target))


def row_kernels(graph: Graph, target: Target, name: str) -> tuple[Kernel, ...]:
    """Kernels that compute a small product as a reduction of each row; none where there is more than rows."""
    try:
        program = lower(without_singles(graph))
        check(program)
        return tuple(Kernel(program, (), variant) for variant in without_tensor_cores(program, name, target))
    except Unsupported:
        return ()


def convolution_kernels(graph: Graph, target: Target, name: str) -> tuple[Kernel, ...]:
    """Kernels that compute the graph's convolution themselves, with what follows it."""
    if target.ieee or target.arch != "sm_90a":
        return ()
    try:
        windows = implicit.windows_of(graph)
    except Unsupported:
        return ()
    if windows is None:
        return ()
    return tuple(Kernel(windows.program, (), variant) for variant in convolutions_of(windows, name, target))


def kernels_of_sums(found: SpaceSum, head: Graph, target: Target, name: str) -> tuple[tuple[GraphInput, Kernel], ...]:
    """Kernels that compute `head`, a convolution with what follows it, and add up the results of each tile."""
    windows = None if target.ieee or target.arch != "sm_90a" else implicit.windows_of(head)
    if windows is None or windows.reduces or len(head.outputs) != 1:
        return ()
    made = []
    for variant in convolutions_of(replace(windows, summed=True), name, target):
        sums = found.sums(next(value for constant, value, _ in variant.constants if constant == "SUMS"))
        made.append((sums, Kernel(implicit.sums_of(windows, sums), (), variant)))
    return tuple(made)


def _channels_last(graph: Graph, target: Target, name: str) -> tuple[Kernel, ...]:
    """Kernels whose convolutions run on channels-last tensors: where pointwise work or results of rows follow."""
    try:
        rest, calls = without_library(graph, last=True)
        program = lower(rest)
    except Unsupported:
        return ()
    of_rows = program.has_reductions and not any(store.per_column for store in program.stores)
    if not turned.applies(program) and not of_rows:
        return ()
    return tuple(Kernel(program, calls, variant) for variant in variants(program, name, target))
