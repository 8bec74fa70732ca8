"""A module's eval-mode forward as an exported program, traced on fake tensors of device cuda: no GPU, no memory."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.cudaless import cuda_without_build
from cutesmith_evaluator.worker.decompositions import decomposition_table
from cutesmith_evaluator.worker.failures import TaskError, finding_of, line_in, text_of
from cutesmith_evaluator.worker.placement import moved
from cutesmith_evaluator.worker.reference import Reference

DEVICE = torch.device("cuda", 0)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True)
class Subject:
    """A module and its arguments on fake tensors; arguments cover all of forward's positional parameters.

    `decompositions`: made once for all of its traces, after the file's ops were registered; it takes a while.
    """

    module: nn.Module
    arguments: tuple[object, ...]
    mode: FakeTensorMode
    file: Path
    decompositions: dict[Any, Callable[..., Any]]


@dataclass(frozen=True)
class Trace:
    """`exported`, `surface`: the ops as the user's code called them; `program`: functional and decomposed."""

    exported: ExportedProgram
    surface: tuple[str, ...]
    output_strides: tuple[tuple[int, ...] | None, ...]  # as eager gives them; None for what is no tensor
    program: ExportedProgram
    autocast: bool  # forward opened an autocast region, which a machine without CUDA ignores


def prepare(reference: Reference) -> Subject:
    """Builds the module and its inputs on fake tensors, real ones where the user's code reads values."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    module = _fake_module(reference, mode).requires_grad_(False)
    return Subject(module, _fake_arguments(reference, mode), mode, reference.file, decomposition_table())


def trace(subject: Subject) -> Trace:
    """Exports the forward at the subject's own arguments. Raises TaskError."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        exported = export(subject, subject.arguments)
    surface, strides = _surface(exported), _output_strides(exported)
    autocast = any("CUDA is not available" in str(warning.message) for warning in warned)
    return Trace(exported, surface, strides, decomposed(exported, subject), autocast)


def export(subject: Subject, arguments: tuple[object, ...]) -> ExportedProgram:
    """The forward's ops as the user's code calls them. Raises TaskError."""
    with _forward_of(subject):
        return torch.export.export(subject.module, arguments, strict=False)


def decomposed(exported: ExportedProgram, subject: Subject) -> ExportedProgram:
    """The same, functional and in the ops of `decompositions`. Raises TaskError."""
    with _forward_of(subject):
        return exported.run_decompositions(subject.decompositions)


@contextmanager
def _forward_of(subject: Subject) -> Iterator[None]:
    logging.disable(logging.CRITICAL)  # torch logs every failed trace; what failed is in the finding
    try:
        with faking(subject.mode):
            yield
    except BaseException as error:  # the user's code may raise anything
        raise TaskError(_finding(error, subject.file)) from error
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def faking(mode: FakeTensorMode) -> Iterator[None]:
    """Everything inside runs on fake tensors and without autograd."""
    with ExitStack() as stack:
        if not torch.backends.cuda.is_built():
            stack.enter_context(cuda_without_build())
        stack.enter_context(torch.no_grad())
        stack.enter_context(mode)
        yield


def _fake_module(reference: Reference, mode: FakeTensorMode) -> nn.Module:
    try:
        with faking(mode):
            return reference.build(DEVICE)
    except TaskError:
        real = reference.construct(reference.cls)
    with faking(mode):
        return reference.placed(real, DEVICE)


def _fake_arguments(reference: Reference, mode: FakeTensorMode) -> tuple[object, ...]:
    try:
        with faking(mode):
            return reference.inputs(0, DEVICE)
    except TaskError:
        real = reference.inputs(0, "cpu")
    with faking(mode):
        return tuple(moved(value, DEVICE) for value in real)


def _surface(exported: ExportedProgram) -> tuple[str, ...]:
    graphs = [module.graph for module in exported.graph_module.modules() if isinstance(module, fx.GraphModule)]
    return tuple(str(node.target) for graph in graphs for node in graph.nodes if node.op == "call_function")


def _output_strides(exported: ExportedProgram) -> tuple[tuple[int, ...] | None, ...]:
    values = [node.meta.get("val") if isinstance(node, fx.Node) else None for node in results(exported)]
    return tuple(tuple(value.stride()) if isinstance(value, Tensor) else None for value in values)


def results(program: ExportedProgram) -> tuple[Any, ...]:
    """What the program returns: nodes, and constants as they are."""
    return tuple(program.graph.output_node().args[0])  # pyright: ignore[reportArgumentType]


def line_of(node: fx.Node, file: Path) -> int | None:
    """The innermost line of `file` that led to this op."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return next((int(line) for name, line in reversed(frames) if Path(name) == file), None)


_KNOWN_FAILURES = {
    "DataDependentOutputException": "data-dependent",
    "GuardOnDataDependentSymNode": "data-dependent",
    "DynamicOutputShapeException": "data-dependent",
    "FakeTensorDeviceMismatchError": "device-mismatch",
    "UnsupportedOperatorException": "unsupported-op",
}
_NEEDS_DEVICE = "not linked with support for cuda"  # what torch says where an op looks at values on the device
_ADVICE = {
    "data-dependent": "uses tensor values in Python (a branch, .item(), a boolean index); a kernel needs a fixed graph",
    "device-mismatch": "mixes CPU and CUDA tensors; make them with device=x.device or register them as buffers",
    "unsupported-op": "calls an op that torch cannot trace, or not without looking at the values",
}


def _finding(error: BaseException, file: Path) -> Finding:
    kind = next((_KNOWN_FAILURES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _KNOWN_FAILURES), None)
    if kind is None and _NEEDS_DEVICE in text_of(error):
        kind = "unsupported-op"
    if kind is None:
        return finding_of(error, "forward-raised", "running forward", file)
    line = line_in(error, file)
    where = f"{file.name}:{line}" if line else file.name
    return Finding(kind, f"{where}: forward {_ADVICE[kind]}.", line, str(file))
