"""Where loads and stores find their elements: CuTe layouts, the vector width they allow, the sizes that may vary."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cutesmith_evaluator.types import GraphInput, TensorSpec

from .geometry import output_spec
from .ir import Load, Total, walk
from .lowering import Program, Store
from .space import contiguous, stored_strides

ITEMSIZE = {"float32": 4, "float16": 2, "bfloat16": 2, "bool": 1, "int64": 8}
CUTE_TYPES = {"float32": "Float32", "float16": "Float16", "bfloat16": "BFloat16", "bool": "Boolean", "int64": "Int64"}
ACCESS_BYTES = 16
INT32 = 1 << 31


@dataclass(frozen=True)
class Modes:
    """(size, stride) pairs, innermost first, merged where one stride covers both."""

    pairs: tuple[tuple[int, int], ...]

    @property
    def inner(self) -> tuple[int, int]:
        return self.pairs[0]


def coalesce(sizes: Iterable[int], strides: Iterable[int]) -> Modes:
    """Row-major sizes and strides (outermost first) as few modes."""
    pairs: list[tuple[int, int]] = []
    for size, stride in reversed(list(zip(sizes, strides, strict=True))):
        if size == 1:
            continue
        if pairs and (stride == pairs[-1][0] * pairs[-1][1] or stride == pairs[-1][1] == 0):
            pairs[-1] = (pairs[-1][0] * size, pairs[-1][1])
        else:
            pairs.append((size, stride))
    return Modes(tuple(pairs) or ((1, 0),))


def layout_text(modes: Modes, total: str) -> str:
    """The CuTe layout; the outermost size follows from `total`, so that it may vary from call to call."""
    if len(modes.pairs) == 1:
        _, stride = modes.pairs[0]
        return f"cute.make_layout({total})" if stride == 1 else f"cute.make_layout({total}, stride={stride})"
    shape, stride = nested(modes, total)
    return f"cute.make_layout(({shape},), stride=({stride},))"


def nested(modes: Modes, total: str) -> tuple[str, str]:
    """Shape and stride of one CuTe mode as text."""
    if len(modes.pairs) == 1:
        return total, str(modes.pairs[0][1])
    sizes = [str(size) for size, _ in modes.pairs]
    inner = math.prod(size for size, _ in modes.pairs[:-1])
    sizes[-1] = f"{total} // {inner}" if not total.isdigit() else str(int(total) // inner)
    return f"({', '.join(sizes)})", f"({', '.join(str(stride) for _, stride in modes.pairs)})"


def vector_width(modes: Modes, offset: int, row_strides: tuple[int, ...], width: int, *, closed: bool) -> int:
    """The largest power of two ≤ width that no access of these modes straddles or misaligns.

    `closed`: the single mode's size is exact (a row's columns); otherwise a tail is predicated.
    """
    size, stride = modes.inner
    limits = [size] if closed or len(modes.pairs) > 1 else []
    if stride == 1:
        limits += [offset, *row_strides, *(s for _, s in modes.pairs[1:])]
    for limit in limits:
        width = math.gcd(width, limit) if limit else width
    return width


def widest_vector(program: Program) -> int:
    """Elements of a 16-byte access of the narrowest floating tensor that is read or written per element."""
    dtypes = [load.dtype for load in program_loads(program) if load.per_column and load.dtype != "bool"]
    dtypes += [
        output_spec(program.graph, program.graph.outputs[s.output]).dtype for s in program.stores if s.per_column
    ]
    narrow = min((ITEMSIZE[d] for d in dtypes if d != "int64"), default=4)
    return ACCESS_BYTES // narrow


def program_loads(program: Program) -> tuple[Load, ...]:
    return tuple(e for e in walk(tuple(s.expr for s in program.stores)) if isinstance(e, Load))


def outputs_of(program: Program) -> tuple[TensorSpec, ...]:
    return tuple(output_spec(program.graph, ref) for ref in program.graph.outputs)


@dataclass(frozen=True)
class Shapes:
    """Which dimensions of which arguments a kernel leaves open, and how many leading root dimensions that is."""

    prefix: int
    open_dims: dict[str, tuple[int, ...]]  # argument name → its open dims


def open_shapes(program: Program) -> Shapes:
    """The longest prefix of root dimensions whose sizes no stride, tile or divisor of the kernel bakes in."""
    if any(isinstance(e, Total) for e in walk(tuple(s.expr for s in program.stores))):
        return Shapes(0, {})  # the workspace and what divides by the number of rows
    if any(math.prod(i.spec.shape) >= INT32 for i in program.graph.inputs):
        return Shapes(0, {})  # where 32 bits suffice is then not a matter of the results
    if any(stored_strides(spec) != contiguous(spec.shape) for spec in outputs_of(program)):
        return Shapes(0, {})  # the first dimension is not the outermost
    groups = [set(g) for g in program.graph.dynamic_dims]
    row_dims = sum(1 for d in program.dims if d and d[0] < program.row_factors)
    limit = row_dims if program.has_reductions else len(program.dims)
    for prefix in range(limit, 0, -1):
        opened = _open_with(program, groups, prefix)
        if opened is not None:
            return Shapes(prefix, opened)
    return Shapes(0, {})


def _open_with(program: Program, groups: list[set[tuple[int, int]]], prefix: int) -> dict[str, tuple[int, ...]] | None:
    factors = []
    for d in range(prefix):
        if len(program.dims[d]) != 1 or program.sizes[program.dims[d][0]] < 2:
            return None
        factors.append(program.dims[d][0])
    if not _one_mode(program, factors):
        return None
    inputs = {i.name: i for i in program.graph.inputs}
    opened: dict[str, set[int]] = {}
    for k in factors:
        group = _group_of(program, groups, inputs, k)
        if group is None or _others_walk(program, inputs, k, group):
            return None
        for name, dim in group:
            opened.setdefault(name, set()).add(dim)
    if any(sorted(dims) != list(range(len(dims))) for dims in opened.values()):
        return None
    return {name: tuple(sorted(dims)) for name, dims in opened.items()}


def _group_of(
    program: Program, groups: list[set[tuple[int, int]]], inputs: dict[str, GraphInput], k: int
) -> list[tuple[str, int]] | None:
    """The argument dims that factor `k` walks, if they are one group that may vary together."""
    walked: set[tuple[str, int]] = set()
    for load in program_loads(program):
        if not load.strides[k]:
            continue
        source = inputs[load.name]
        dims = _dims_walked(program, source, load, k)
        if source.kind != "argument" or not dims:
            return None
        walked.add((load.name, dims[0]))
    positions = {(inputs[name].position, dim) for name, dim in walked}
    if not walked or not any(positions <= group and _covers(group, positions, inputs, program) for group in groups):
        return None
    return sorted(walked)


def _dims_walked(program: Program, source: GraphInput, load: Load, k: int) -> list[int]:
    """The dims of a loaded tensor that are as long as factor `k`, a step of which is a step of theirs."""
    shape = source.spec.shape
    return [d for d, s in enumerate(source.spec.strides) if s == load.strides[k] and shape[d] == program.sizes[k]]


def _others_walk(program: Program, inputs: dict[str, GraphInput], k: int, group: list[tuple[str, int]]) -> bool:
    """Whether another factor walks one of the dims, as the columns of a product of a tensor with itself do."""
    loads = [load for load in program_loads(program) if inputs[load.name].kind == "argument"]
    others = [j for j in range(len(program.sizes)) if j != k]
    walked = {
        (load.name, d)
        for load in loads
        for j in others
        if load.strides[j]
        for d in _dims_walked(program, inputs[load.name], load, j)
    }
    return any(each in walked for each in group)


def _covers(
    group: set[tuple[int, int]], positions: set[tuple[int | None, int]], inputs: dict[str, GraphInput], program: Program
) -> bool:
    """No other dim of a loaded argument is in the group: it would vary behind the kernel's back."""
    loaded = {inputs[load.name].position for load in program_loads(program)}
    return all((p, d) in positions for p, d in group if p in loaded)


def _one_mode(program: Program, factors: list[int]) -> bool:
    """Every load and store walks the open dimensions as one mode, or not at all, and that mode is its outermost."""
    accesses: list[Load | Store] = [*program_loads(program), *program.stores]
    for access in accesses:
        strides = [access.strides[k] for k in factors]
        sizes = [program.sizes[k] for k in factors]
        if any(strides) and len(coalesce(sizes, strides).pairs) != 1:
            return False
    return True
