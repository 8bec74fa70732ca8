"""Answers `inspect`: what the module computes, or why no kernel can be made for it."""

from __future__ import annotations

import inspect as introspection
from collections.abc import Callable
from typing import Any, cast

from torch import Tensor

from cutesmith_evaluator.types import Arg, Graph, Guard, Inspection, Task
from cutesmith_evaluator.worker.category import categorise
from cutesmith_evaluator.worker.cost import flops, minimal_bytes, used_names
from cutesmith_evaluator.worker.dynamic import dynamic_dims
from cutesmith_evaluator.worker.environment import environment
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.graphs import Body, read_body
from cutesmith_evaluator.worker.limits import check_arguments, check_module, refusal
from cutesmith_evaluator.worker.project import imported_files
from cutesmith_evaluator.worker.reference import Reference, load_reference
from cutesmith_evaluator.worker.tracing import Subject, Trace, prepare, trace
from cutesmith_evaluator.worker.watch import Watch, watch_module

Progress = Callable[[str], None]


def inspect(params: dict[str, Any], progress: Progress) -> Inspection:
    """`params`: {"task"}. Problems of the task are findings of the result."""
    parameters: tuple[str, ...] = ()
    try:
        progress("importing the module's file")
        reference = load_reference(Task(**params["task"]))
        parameters = tuple(introspection.signature(reference.cls.forward).parameters)[1:]
        graph = _graph(reference, progress)
        return Inspection(environment(), graph, parameters, imported=imported_files(reference.file))
    except TaskError as error:
        return Inspection(environment(), None, parameters, (error.finding,))


def _graph(reference: Reference, progress: Progress) -> Graph:
    progress("building the module on fake tensors")
    subject = prepare(reference)
    check_module(subject.module, subject.file)
    check_arguments(subject.arguments, subject.file)
    progress("tracing forward")
    watch = watch_module(subject.module)
    traced = trace(subject)
    watch.reading = False
    _check_watched(watch, traced, subject)
    body = read_body(traced, subject)
    progress("retracing forward at other sizes")
    return _assembled(body, traced, watch, subject)


def _assembled(body: Body, traced: Trace, watch: Watch, subject: Subject) -> Graph:
    specs = {node.name: node.outputs for node in body.nodes} | {each.name: (each.spec,) for each in body.inputs}
    outputs = [specs[ref.name][ref.index] for ref in body.outputs]
    return Graph(
        inputs=tuple(body.inputs),
        nodes=tuple(body.nodes),
        outputs=tuple(body.outputs),
        returns_tuple=body.returns_tuple,
        guards=(*watch.guards(), *_argument_guards(subject.arguments)),
        dynamic_dims=dynamic_dims(subject, traced),
        category=categorise(traced.surface, body.inputs, outputs),
        flops=flops(body.inputs, body.nodes),
        bytes=minimal_bytes(body.inputs, outputs, used_names(body.nodes, body.outputs)),
    )


def _argument_guards(arguments: tuple[object, ...]) -> tuple[Guard, ...]:
    return tuple(
        Guard(cast(Arg, value), position=position)  # check_arguments has seen to it
        for position, value in enumerate(arguments)
        if not isinstance(value, Tensor)
    )


def _check_watched(watch: Watch, traced: Trace, subject: Subject) -> None:
    """Python state that a kernel could neither be guarded on nor write."""
    for path, kind in watch.unguardable.items():
        what = f"reads self.{path}, {kind}, which a kernel cannot be guarded on; keep plain values as attributes"
        raise refusal("unguarded-state", what, subject.file)
    for path, line in watch.written.items():
        raise refusal("writes-state", f"assigns self.{path}, which a kernel would not", subject.file, line)
    if traced.autocast:
        raise refusal("autocast", "opens an autocast region; cast explicitly with .to()", subject.file)
