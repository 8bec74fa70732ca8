"""What a graph cannot hold, each as one finding."""

from __future__ import annotations

import inspect
from pathlib import Path

import torch
from torch import Tensor, fx, nn
from torch._ops import OpOverload
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, TensorArgument
from torch.nn.modules import module as torch_module

from cutesmith_evaluator.names import state_expression
from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.tracing import Subject, Trace, line_of, results
from cutesmith_evaluator.worker.watch import is_plain

_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_GLOBAL_HOOKS = ("_global_forward_pre_hooks", "_global_forward_hooks")


def refusal(kind: str, what: str, file: Path, line: int | None = None) -> TaskError:
    """`what` completes "forward …"."""
    where = f"{file.name}:{line}" if line else file.name
    return TaskError(Finding(kind, f"{where}: forward {what}.", line, str(file)))


def check_module(module: nn.Module, file: Path) -> None:
    """Hooks would be bypassed by a kernel; what is no plain function cannot be replaced by one."""
    _check_plain(module, file)
    for path, part in module.named_modules():
        name = path or "the module itself"
        if any(getattr(part, hooks, None) for hooks in _HOOKS):
            raise refusal("hooks", f"has hooks on {name}, which a kernel would bypass; remove them", file)
    if any(getattr(torch_module, hooks, None) for hooks in _GLOBAL_HOOKS):
        raise refusal("hooks", "runs under global module hooks, which a kernel would bypass; remove them", file)


def _check_plain(module: nn.Module, file: Path) -> None:
    name = type(module).__qualname__
    if inspect.iscoroutinefunction(module.forward) or inspect.isasyncgenfunction(module.forward):
        raise refusal("unsupported-forward", f"of {name} is async: a kernel cannot stand in for it", file)
    if inspect.isgeneratorfunction(module.forward):
        raise refusal("unsupported-forward", f"of {name} is a generator: a kernel cannot stand in for it", file)


def check_arguments(arguments: tuple[object, ...], file: Path) -> None:
    """Each argument is a strided tensor, or a plain value or tuple of such that a kernel can be guarded on."""
    for position, value in enumerate(arguments):
        if isinstance(value, Tensor):
            _check_tensor(value, f"takes argument {position}", file, None)
        elif not is_plain(value):
            what = f"takes a {type(value).__name__} as argument {position}; pass tensors, numbers, strings or tuples"
            raise refusal("unsupported-argument", what, file)


def check_constant(spec: InputSpec, value: Tensor, file: Path) -> str:
    """What leads from the module to a piece of state, as Python after `module.`."""
    path = spec.target or ""
    if spec.kind is InputKind.CUSTOM_OBJ or spec.kind is InputKind.TOKEN:
        raise refusal("unsupported-op", "uses a custom object or an effectful op", file)
    if is_literal(spec):
        raise refusal("unregistered-constant", "uses a tensor made elsewhere; register it as a buffer", file)
    if value.device.type != "cuda":
        raise refusal("cpu-constant", f"uses self.{path}, which stays on the CPU; register it as a buffer", file)
    _check_tensor(value, f"uses self.{path}", file, None)
    return state_expression(path)


def is_literal(spec: InputSpec) -> bool:
    """Whether torch found a tensor that is no attribute: one made in forward, or a global."""
    name = (spec.target or "").rpartition(".")[2]
    return spec.kind is InputKind.CONSTANT_TENSOR and name.startswith("lifted_tensor")


def check_call(node: fx.Node, file: Path, line: int | None) -> None:
    """One op that gives strided real tensors of fixed shape, the same ones every time."""
    if not isinstance(node.target, OpOverload):
        name = getattr(node.target, "__name__", str(node.target))
        raise refusal("unsupported-op", f"uses {name}, which is not an aten op", file, line)
    if torch.Tag.nondeterministic_seeded in node.target.tags and _argument(node, "dropout_p") != 0:
        raise refusal("random", f"draws random numbers ({node.target}) in eval mode", file, line)
    values = node.meta.get("val")
    for value in values if isinstance(values, list | tuple) else (values,):
        if isinstance(value, Tensor):
            _check_tensor(value, f"calls {node.target}", file, line)
        elif value is not None:
            raise refusal("data-dependent", "turns a tensor into a Python number (.item(), int())", file, line)


def check_outputs(trace: Trace, subject: Subject) -> bool:
    """Whether forward returns a tuple. It must return tensors of the device and write to nothing it was given."""
    file = subject.file
    _check_effects(trace, file)
    for spec in trace.program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            target = f" ({spec.target})" if spec.target else ""
            what = f"writes to its arguments or its state{target}, which a kernel would not; compute out of place"
            raise refusal("writes-state", what, file)
        if not isinstance(spec.arg, TensorArgument):
            raise refusal("unsupported-output", "returns something besides tensors", file)
    for node in results(trace.program):
        if node.meta["val"].device.type != "cuda":
            raise refusal("device-mismatch", "returns a CPU tensor; keep the result on x.device", file)
    return _is_tuple(trace, file)


def _check_effects(trace: Trace, file: Path) -> None:
    """An op with effects is not to be taken for a write: `linalg.inv` raises where a matrix is singular."""
    for node in trace.program.graph.nodes:
        if node.target is torch.ops.higher_order.with_effects:
            what = f"calls {node.args[1]}, which looks at values and may raise; a kernel cannot"
            raise refusal("unsupported-op", what, file, line_of(node, file))


def _is_tuple(trace: Trace, file: Path) -> bool:
    structure = trace.program.call_spec.out_spec
    assert structure is not None
    if structure.is_leaf():
        return False
    if structure.type is tuple and structure.num_leaves and all(part.is_leaf() for part in structure.children()):
        return True
    raise refusal("unsupported-output", "returns a container that is not one flat tuple of tensors", file)


def _check_tensor(value: Tensor, doing: str, file: Path, line: int | None) -> None:
    if value.layout is not torch.strided:
        raise refusal("unsupported-dtype", f"{doing}: a {value.layout} tensor; use dense ones", file, line)
    if value.is_complex():
        raise refusal("unsupported-dtype", f"{doing}: complex numbers; kernels take real ones", file, line)
    if not all(isinstance(size, int) for size in value.shape):
        raise refusal("data-dependent", f"{doing}: a shape that depends on values", file, line)


def _argument(node: fx.Node, name: str) -> object:
    """An argument by name, given or by default; None where the op has none of that name."""
    assert isinstance(node.target, OpOverload)
    for place, formal in enumerate(node.target._schema.arguments):
        if formal.name == name:
            return node.args[place] if place < len(node.args) else node.kwargs.get(name, formal.default_value)
    return None
