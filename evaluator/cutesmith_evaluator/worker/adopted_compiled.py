"""The patched class under torch.compile: one graph, with the kernel in it, and the kernel's bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.checks import Outcome
from cutesmith_evaluator.worker.checks_call import guarded
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs, tensors
from cutesmith_evaluator.worker.numerics_bits import equal_bits

_PYTORCHS = ("aten", "prims", "prim", "inductor", "higher_order", "_c10d_functional")


def check_compiled(
    adopted: nn.Module, inputs: Inputs, wanted: list[Tensor], file: Path, device: torch.device, outcome: Outcome
) -> None:
    """`wanted`: the kernel's outputs. Adds a finding for a graph break, a graph without the kernel, other bits."""
    try:
        ops = traced_ops(adopted, inputs, file, device)
        got = _compiled(adopted, inputs, file, device, "inductor")
    except TaskError as error:
        outcome.findings.append(error.finding)
        return
    if not any(op.partition(".")[0] not in _PYTORCHS for op in ops):
        _add(outcome, file, f"runs the original code instead of the kernel (its graph: {', '.join(ops[:6])})")
    elif not all(map(equal_bits, got, wanted)):
        _add(outcome, file, "gives other values than the kernel")
    outcome.checks.append("patched class: the kernel's bits under torch.compile, in one graph")


def traced_ops(adopted: nn.Module, inputs: Inputs, file: Path, device: torch.device) -> list[str]:
    """The ops of the one graph that torch.compile makes, as "namespace.op". Raises TaskError on a graph break."""
    graphs: list[torch.fx.GraphModule] = []

    def recording(graph: torch.fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    _compiled(adopted, inputs, file, device, recording)
    return [name for graph in graphs for node in graph.graph.nodes if (name := _op_name(node))]


def _compiled(
    adopted: nn.Module, inputs: Inputs, file: Path, device: torch.device, backend: str | Callable[..., Any]
) -> list[Tensor]:
    torch._dynamo.reset()
    compiled = torch.compile(adopted, backend=backend, fullgraph=True)
    doing = "running its class under torch.compile(fullgraph=True)"
    return tensors(guarded(lambda: compiled(*inputs), "adopted-compile-error", doing, file, device))


def _op_name(node: torch.fx.Node) -> str | None:
    """ "aten.mul" for what PyTorch itself brings, else the op's own namespace and name."""
    if node.op not in ("call_function", "call_method"):
        return None
    if isinstance(node.target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        packet = node.target.overloadpacket if isinstance(node.target, torch._ops.OpOverload) else node.target
        return packet._qualified_op_name.replace("::", ".")
    return f"aten.{getattr(node.target, '__name__', node.target)}"


def _add(outcome: Outcome, file: Path, words: str) -> None:
    message = f"Under torch.compile the patched class of {file.name} {words}."
    outcome.findings.append(Finding("adopted-differs", message, None, str(file)))
