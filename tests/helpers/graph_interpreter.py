"""Runs a `Graph` with PyTorch on the CPU: what a graph says is what the module computes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from cutesmith_evaluator.types import Graph, Node, Ref


def run_graph(graph: Graph, module: nn.Module, arguments: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """The graph's outputs for these arguments, with the state of `module`."""
    values: dict[str, tuple[torch.Tensor, ...]] = {}
    for each in graph.inputs:
        own = eval(f"module.{each.path}", {"module": module}) if each.path else None
        value = own if each.position is None else arguments[each.position]
        values[each.name] = (value,)
    for node in graph.nodes:
        values[node.name] = _run(node, values)
    return tuple(values[ref.name][ref.index] for ref in graph.outputs)


def _run(node: Node, values: dict[str, tuple[torch.Tensor, ...]]) -> tuple[torch.Tensor, ...]:
    namespace, packet, overload = node.op.split(".")
    packet = "reshape" if packet == "view" else packet  # a graph says nothing of the layout in between
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    kwargs = {name: _value(value, values) for name, value in node.kwargs.items()}
    if isinstance(kwargs.get("dtype"), str):
        kwargs["dtype"] = getattr(torch, kwargs["dtype"])
    result = op(*(_value(arg, values) for arg in node.args), **kwargs)
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _value(arg: Any, values: dict[str, tuple[torch.Tensor, ...]]) -> Any:
    if isinstance(arg, Ref):
        return values[arg.name][arg.index]
    return [_value(item, values) for item in arg] if isinstance(arg, tuple) else arg
