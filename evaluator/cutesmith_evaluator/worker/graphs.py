"""An exported program as a `Graph`'s inputs, nodes and outputs: aliases, no-ops and dead code gone."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, fx
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec

from cutesmith_evaluator.types import Arg, GraphInput, Node, Ref, TensorSpec
from cutesmith_evaluator.worker.arguments import completed, dtype_name
from cutesmith_evaluator.worker.limits import check_call, check_constant, check_outputs, is_literal, refusal
from cutesmith_evaluator.worker.tracing import Subject, Trace, line_of, results

_aten = torch.ops.aten
# Of these, a call whose result has the shape, dtype and strides of its argument does nothing.
_MAYBE_NOTHING = {
    *(_aten.alias.default, _aten.detach.default, _aten.clone.default, _aten._to_copy.default, _aten.expand.default),
    *(_aten.lift_fresh_copy.default, _aten.view.default, _aten._unsafe_view.default, _aten.slice.Tensor),
}
_STATE: dict[InputKind, Literal["parameter", "buffer", "constant"]] = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}


@dataclass
class Body:
    """What an exported program computes. Filled node by node; use `read_body`."""

    file: Path
    inputs: list[GraphInput] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Ref] = field(default_factory=list)
    refs: dict[fx.Node, Ref] = field(default_factory=dict)
    returns_tuple: bool = False


def read_body(trace: Trace, subject: Subject) -> Body:
    """Raises TaskError on what a graph cannot hold: complex numbers, randomness, writes to arguments, …"""
    body = Body(subject.file, returns_tuple=check_outputs(trace, subject))
    graph = trace.program.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    positions = iter(_leaf_positions(subject.arguments))
    for node, spec in zip(placeholders, trace.program.graph_signature.input_specs, strict=True):
        position = next(positions) if spec.kind is InputKind.USER_INPUT else None
        _read_input(body, node, spec, position, trace)
    for node in graph.nodes:
        if node.op == "call_function":
            _read_call(body, node)
    body.outputs = [body.refs[node] for node in results(trace.program)]
    _drop_dead(body)
    _keep_eager_strides(body, trace)
    return body


def spec_of(tensor: Tensor) -> TensorSpec:
    return TensorSpec(tuple(map(int, tensor.shape)), dtype_name(tensor.dtype), tuple(map(int, tensor.stride())))


def _leaf_positions(arguments: tuple[object, ...]) -> list[int]:
    """The argument each of the program's inputs belongs to: a tuple is as many inputs as it has items."""
    return [position for position, value in enumerate(arguments) for _ in range(_leaves(value))]


def _leaves(value: object) -> int:
    return sum(map(_leaves, value)) if isinstance(value, tuple) else 1


def _read_input(body: Body, node: fx.Node, spec: InputSpec, position: int | None, trace: Trace) -> None:
    value = node.meta.get("val")
    if isinstance(spec.arg, ConstantArgument) or not isinstance(value, Tensor):
        return
    body.refs[node] = Ref(node.name)
    if spec.kind is InputKind.USER_INPUT:
        body.inputs.append(GraphInput(node.name, "argument", spec_of(value), position=position))
        return
    constant = trace.program.constants.get(spec.target or "")
    if is_literal(spec) and isinstance(constant, Tensor) and constant.numel() == 1:
        _read_number(body, node, constant)
        return
    path = check_constant(spec, value, body.file)
    body.inputs.append(GraphInput(node.name, _STATE[spec.kind], spec_of(value), path=path))


def _read_number(body: Body, node: fx.Node, constant: Tensor) -> None:
    """A tensor of one element made from a number: `torch.tensor(0.5)`."""
    args = (tuple(constant.shape), constant.item())
    kwargs: dict[str, Arg] = {"dtype": dtype_name(constant.dtype)}
    body.nodes.append(Node(node.name, "aten.full.default", args, kwargs, (spec_of(constant),)))


def _read_call(body: Body, node: fx.Node) -> None:
    if node.target is operator.getitem:
        body.refs[node] = _picked(body, *node.args)
        return
    line = line_of(node, body.file)
    check_call(node, body.file, line)
    specs = _output_specs(node)
    source = node.args[0] if node.args else None
    if node.target in _MAYBE_NOTHING and isinstance(source, fx.Node) and specs == _output_specs(source):
        body.refs[node] = body.refs[source]
        return
    try:
        args, kwargs = completed(node, body.refs.__getitem__)
    except TypeError as error:
        raise refusal("unsupported-op", f"calls {node.target} with {error}", body.file, line) from error
    body.refs[node] = Ref(node.name)
    body.nodes.append(Node(node.name, str(node.target), args, kwargs, specs, line))


def _picked(body: Body, source: Any, index: Any) -> Ref:
    return Ref(body.refs[source].name, index)


def _output_specs(node: fx.Node) -> tuple[TensorSpec, ...]:
    """One for each output; an output that torch leaves out has dtype "none"."""
    values = node.meta.get("val")
    outputs = (values,) if isinstance(values, Tensor) else tuple(values or ())
    return tuple(spec_of(value) if isinstance(value, Tensor) else TensorSpec((), "none", ()) for value in outputs)


def references(value: object) -> list[Ref]:
    """Every `Ref` in an argument."""
    if isinstance(value, Ref):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [ref for item in value for ref in references(item)] if isinstance(value, tuple) else []


def _drop_dead(body: Body) -> None:
    """Keeps the nodes and the state that outputs depend on; unused arguments stay, for their positions."""
    used = {ref.name for ref in body.outputs}
    alive: list[Node] = []
    for node in reversed(body.nodes):
        if node.name in used:
            alive.append(node)
            used |= {ref.name for ref in references((*node.args, node.kwargs))}
    body.nodes = alive[::-1]
    body.inputs = [each for each in body.inputs if each.name in used or each.kind == "argument"]


def _keep_eager_strides(body: Body, trace: Trace) -> None:
    """Decompositions may lay a result out otherwise than eager does; the graph says what eager does."""
    places = {node.name: place for place, node in enumerate(body.nodes)}
    for ref, strides in zip(body.outputs, trace.output_strides, strict=True):
        if ref.name in places and strides is not None:
            node = body.nodes[places[ref.name]]
            outputs = list(node.outputs)
            outputs[ref.index] = replace(outputs[ref.index], strides=strides)
            body.nodes[places[ref.name]] = replace(node, outputs=tuple(outputs))
