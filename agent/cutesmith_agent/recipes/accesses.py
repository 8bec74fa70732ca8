"""The tensors a kernel touches, named as CuTe code names them, and the host's views of them."""

from __future__ import annotations

from dataclasses import dataclass

from cutesmith_evaluator.types import GraphInput, TensorSpec

from .geometry import output_spec
from .ir import Load
from .layout import CUTE_TYPES, Modes, coalesce
from .lowering import Program, Store
from .space import contiguous, ranks, stored_strides
from .text import identifier


@dataclass(frozen=True)
class Access:
    """One view of one tensor: `local` is its value in the kernel, `gmem` the kernel's tensor, `param` the host's."""

    local: str
    gmem: str
    param: str
    dtype: str
    rows: Modes
    columns: Modes
    offset: int
    row_strides: tuple[int, ...]
    per_column: bool
    load: Load | None = None
    store: Store | None = None

    @property
    def is_shared(self) -> bool:
        """Whether all rows read the same columns."""
        return self.per_column and not any(self.row_strides)


@dataclass(frozen=True)
class Tensors:
    """Parameters of the op (arguments of forward, state, then outputs) and the kernel's views of them."""

    inputs: tuple[GraphInput, ...]
    names: dict[str, str]  # graph input name → Python name
    outputs: tuple[str, ...]
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]

    @property
    def views(self) -> tuple[Access, ...]:
        return (*self.loads, *self.stores)

    @property
    def gmem(self) -> str:
        """The kernel's tensors as call arguments."""
        return ", ".join(a.gmem for a in self.views)

    @property
    def signature(self) -> str:
        """The kernel's tensors as annotated parameters."""
        return ", ".join(f"{a.gmem}: cute.Tensor" for a in self.views)


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def param(name: str) -> str:
    """The host function's parameter for a tensor of this name."""
    return f"m{camel(name)}"


def tensors_of(program: Program, loads: tuple[Load, ...]) -> Tensors:
    used = {load.name for load in loads}
    arguments_first = sorted(program.graph.inputs, key=lambda i: i.position is None)
    inputs = tuple(i for i in arguments_first if i.name in used)
    names = names_of(inputs)
    count = len(program.graph.outputs)
    outputs = tuple("y" if count == 1 else f"y{k}" for k in range(count))
    outputs = tuple(f"{o}_out" if o in names.values() else o for o in outputs)
    views = [_load_access(program, loads, load, names[load.name]) for load in loads]
    stores = [_store_access(program, store, outputs[store.output]) for store in program.stores]
    return Tensors(inputs, names, outputs, tuple(views), tuple(stores))


def names_of(inputs: tuple[GraphInput, ...]) -> dict[str, str]:
    """Python names of graph inputs, each its own."""
    names: dict[str, str] = {}
    for i in inputs:
        name = identifier((i.path or i.name).replace(".", "_"))
        while name in names.values():
            name += "_"
        names[i.name] = name
    return names


def _load_access(program: Program, loads: tuple[Load, ...], load: Load, name: str) -> Access:
    twins = [other for other in loads if other.name == load.name]
    local = name if len(twins) == 1 else f"{name}_{twins.index(load)}"
    return _access(program, local, name, load.dtype, load, load=load)


def _store_access(program: Program, store: Store, name: str) -> Access:
    twins = [other for other in program.stores if other.output == store.output]
    local = name if len(twins) == 1 else f"{name}_{twins.index(store)}"
    dtype = output_spec(program.graph, program.graph.outputs[store.output]).dtype
    return _access(program, local, name, dtype, store, store=store)


def _access(
    program: Program,
    local: str,
    name: str,
    dtype: str,
    at: Load | Store,
    *,
    load: Load | None = None,
    store: Store | None = None,
) -> Access:
    k = program.row_factors
    rows = coalesce(program.sizes[:k], at.strides[:k])
    columns = coalesce(program.sizes[k:], at.strides[k:])
    row_strides = tuple(s for n, s in zip(program.sizes[:k], at.strides[:k], strict=True) if n > 1)
    return Access(
        local,
        f"g{camel(local)}",
        param(name),
        dtype,
        rows,
        columns,
        at.offset,
        row_strides,
        at.per_column,
        load,
        store,
    )


def cute_type(dtype: str) -> str:
    return f"cutlass.{CUTE_TYPES[dtype]}"


def pointer(access: Access) -> str:
    return f"{access.param}.iterator + {access.offset}" if access.offset else f"{access.param}.iterator"


def fake_text(spec: TensorSpec, opened: int) -> str:
    """A stand-in of the same dtype and shape, open sizes as symbols."""
    sizes = ["cute.sym_int()"] * opened + [str(n) for n in spec.shape[opened:]]
    if not sizes:
        sizes = ["1"]
    shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
    strides = stored_strides(spec)
    if contiguous(spec.shape) == strides or opened or not spec.shape:
        return f"fake({cute_type(spec.dtype)}, {shape})"
    return f"fake({cute_type(spec.dtype)}, {shape}, {ranks(strides)})"
