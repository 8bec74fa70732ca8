"""What a prompt may say of one task: everything about it that does not change from call to call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.arithmetic import operations
from cutesmith_agent.estimate import CORES, FLOPS_A_CLOCK, Cores, estimate
from cutesmith_agent.refine.paths import without_paths
from cutesmith_agent.refine.wording import enclosed
from cutesmith_evaluator.types import Environment, Graph, GraphInput, Node, Ref, TensorSpec
from cutesmith_evaluator.units import duration

_MOST_NODES = 120


@dataclass(frozen=True)
class Briefing:
    """One class to write a kernel for. `source`: of the class and what it uses; `root`: paths below it may be named."""

    class_name: str
    source: str
    graph: Graph
    archs: tuple[str, ...]
    environment: Environment
    root: Path

    @property
    def arch(self) -> str:
        return self.archs[0]

    def fields(self) -> dict[str, str]:
        """The values of `prompts/task.md`, its menu aside."""
        graph = self.graph
        device = self.environment.device
        return {
            "class_name": self.class_name,
            "source": enclosed(self.source),
            "category": graph.category,
            "archs": ", ".join(self.archs),
            "device": f" ({device})" if device != "none" else "",
            "inputs": "\n".join(f"- {_input(one)}" for one in graph.inputs),
            "nodes": "\n".join(_nodes(graph)),
            "outputs": ", ".join(map(_arg, graph.outputs)) + (" (a tuple)" if graph.returns_tuple else ""),
            "guards": without_paths(", ".join(_guards(graph)), self.root) or "none",
            "dynamic": "; ".join(" with ".join(map(str, group)) for group in graph.dynamic_dims) or "none",
            "flops": f"{graph.flops:,}",
            "bytes": f"{graph.bytes:,}",
            "roofline": self._roofline(),
            "cores": self._cores(),
        }

    def _cores(self) -> str:
        known = CORES.get(self.arch)
        if known is None:
            return ""
        rate = f"{_flops_a_second(known) / 1e12:.0f} TFLOP/s of fp32 without tensor cores"
        return f" Such a device has {known.multiprocessors} multiprocessors, and {rate}."

    def _roofline(self) -> str:
        """What memory needs, and where that is longer, arithmetic."""
        guess, known = estimate(self.graph.bytes, self.arch), CORES.get(self.arch)
        moving = f" Moving them takes at least {duration(guess.ms)}: {guess.basis}." if guess else ""
        counting = operations(self.graph) / _flops_a_second(known) * 1e3 if known else 0.0
        if guess is None or counting <= guess.ms:
            return moving
        return f"{moving} The operations take at least {duration(counting)} without tensor cores: save those first."


def _flops_a_second(cores: Cores) -> float:
    return cores.multiprocessors * cores.hertz * FLOPS_A_CLOCK


def _input(one: GraphInput) -> str:
    where = f"argument {one.position}" if one.path is None else f"{one.kind} module.{one.path}"
    return f"{one.name}: {_spec(one.spec)}, {where}"


def _spec(spec: TensorSpec) -> str:
    return f"{spec.dtype}[{', '.join(map(str, spec.shape))}] strides ({', '.join(map(str, spec.strides))})"


def _nodes(graph: Graph) -> Iterator[str]:
    for node in graph.nodes[:_MOST_NODES]:
        yield f"- {_node(node)}"
    if len(graph.nodes) > _MOST_NODES:
        yield f"- and {len(graph.nodes) - _MOST_NODES} more, as in the source"


def _node(node: Node) -> str:
    arguments = [*map(_arg, node.args), *(f"{name}={_arg(value)}" for name, value in node.kwargs.items())]
    outputs = ", ".join(f"{spec.dtype}[{', '.join(map(str, spec.shape))}]" for spec in node.outputs)
    return f"{node.name} = {node.op}({', '.join(arguments)}) -> {outputs}"


def _arg(value: object) -> str:
    if isinstance(value, Ref):
        return value.name if value.index == 0 else f"{value.name}[{value.index}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_arg, value))})"
    return repr(value)


def _guards(graph: Graph) -> Iterator[str]:
    for guard in graph.guards:
        where = f"module.{guard.path}" if guard.path is not None else f"argument {guard.position}"
        yield f"{where} is module.{guard.same_as}" if guard.same_as else f"{where} == {_arg(guard.value)}"
