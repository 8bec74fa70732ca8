"""Graphs of a convolution that is averaged over, and what rewritten ones compute."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from cutesmith_agent.recipes.space import contiguous
from cutesmith_evaluator.types import Arg, Graph, GraphInput, Node, Ref, TensorSpec
from graph_interpreter import run_graph


@dataclass(frozen=True)
class Geometry:
    """A convolution; channels are those of a group."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    extra: tuple[int, ...]  # of results of a transposed one
    transposed: bool = False
    groups: int = 1
    channels: int = 2
    outer: int = 3
    batch: int = 2

    @property
    def results(self) -> tuple[int, ...]:
        along = zip(self.sizes, self.kernel, self.stride, self.padding, self.dilation, self.extra, strict=True)
        if self.transposed:
            return tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in along)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in along)

    @property
    def x(self) -> tuple[int, ...]:
        return (self.batch, self.groups * self.channels, *self.sizes)

    @property
    def weight(self) -> tuple[int, ...]:
        if self.transposed:
            return (self.groups * self.channels, self.outer, *self.kernel)
        return (self.groups * self.outer, self.channels, *self.kernel)

    @property
    def result(self) -> tuple[int, ...]:
        return (self.batch, self.groups * self.outer, *self.results)

    @property
    def is_possible(self) -> bool:
        whole = all(n >= 1 for n in self.results)
        return whole and all(e < max(s, d) for e, s, d in zip(self.extra, self.stride, self.dilation, strict=True))

    def node(self) -> Node:
        args = (Ref("x"), Ref("weight"), Ref("bias"), self.stride, self.padding, self.dilation, self.transposed)
        extra = self.extra if self.transposed else (0,) * len(self.extra)
        return made("c", "convolution", (*args, extra, self.groups), self.result)

    def graph(self, *nodes: Node, dtype: str = "float32") -> Graph:
        """The convolution and what follows it; `scale`: a value of each channel, `plane`: one of each position."""
        channels = self.result[1]
        ones = (1,) * len(self.sizes)
        shapes = {"weight": self.weight, "bias": (channels,), "scale": (channels, *ones), "plane": self.results}
        own = {"weight": "conv.weight", "bias": "conv.bias", "scale": "scale", "plane": "plane"}
        spec = {name: TensorSpec(shape, dtype, contiguous(shape)) for name, shape in {"x": self.x, **shapes}.items()}
        inputs = [GraphInput(name, "parameter", spec[name], path=own[name]) for name in shapes]
        inputs.append(GraphInput("x", "argument", spec["x"], position=0))
        every = tuple(
            replace(n, outputs=tuple(replace(o, dtype=dtype) for o in n.outputs)) for n in (self.node(), *nodes)
        )
        return Graph(tuple(inputs), every, (Ref(every[-1].name),), False, (), (), "conv", 0, 0)

    def module(self) -> nn.Module:
        """What the graph is of, with random parameters."""
        kind = "ConvTranspose" if self.transposed else "Conv"
        extra = {"output_padding": self.extra} if self.transposed else {}
        of = getattr(nn, f"{kind}{len(self.sizes)}d")
        module = nn.Module()
        every = (self.groups * self.channels, self.result[1], self.kernel, self.stride, self.padding)
        module.conv = of(*every, dilation=self.dilation, groups=self.groups, **extra)
        module.scale = nn.Parameter(torch.randn(self.result[1], *(1 for _ in self.sizes)))
        module.plane = nn.Parameter(torch.randn(self.results))
        return module


def _of_type(node: Node, dtype: str) -> Node:
    return replace(node, outputs=tuple(replace(spec, dtype=dtype) for spec in node.outputs))


def made(name: str, op: str, args: tuple[Arg, ...], shape: tuple[int, ...], **kwargs: Arg) -> Node:
    overload = {"mean": "dim", "sum": "dim_IntList", "mul": "Tensor", "add": "Tensor", "sub": "Tensor", "div": "Tensor"}
    spec = TensorSpec(shape, "float32", contiguous(shape))
    return Node(name, f"aten.{op}.{overload.get(op, 'default')}", args, kwargs, (spec,))


def averaged_over(given: str, dims: tuple[int, ...], shape: tuple[int, ...], op: str = "mean") -> Node:
    """A mean or sum that keeps its dimensions."""
    return made("m", op, (Ref(given), dims, True), tuple(1 if d in dims else n for d, n in enumerate(shape)))


def random_values(graph: Graph) -> dict[str, torch.Tensor]:
    return {i.name: torch.randn(i.spec.shape, dtype=torch.float64) for i in graph.inputs}


def computed(graph: Graph, values: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """The graph's outputs, given its inputs by name."""
    inputs = tuple(replace(i, position=k, path=None) for k, i in enumerate(graph.inputs))
    return run_graph(replace(graph, inputs=inputs), nn.Module(), tuple(values[i.name] for i in inputs))
