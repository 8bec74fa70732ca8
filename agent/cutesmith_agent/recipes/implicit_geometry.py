"""A convolution as a matrix product: which places of the input each result multiplies with which part of the weight.

Results are computed at positions of a grid. A convolution of stride 1 has a result at each; a transposed one of stride
s has s of them along a dimension, of different phases: each has elements of the kernel of its own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref

from .views import integers

CONVOLUTION = "aten.convolution.default"
EIGHT = 8  # channels that lie together: 16 bytes of fp16
DIMS = 3  # an image is a volume of one slice
Taps = tuple[tuple[int, int], ...]  # (element of the kernel, place in a window of the input), by place


@dataclass(frozen=True)
class Along:
    """One dimension."""

    size: int  # of the input
    results: int
    kernel: int
    step: int  # results of a position
    positions: int
    start: int  # in the input, of the first position's window
    begin: int  # result o has element t of input i where step * i = o + begin + apart * t
    apart: int
    phases: tuple[Taps, ...]

    @property
    def reach(self) -> int:
        """Input elements of a window."""
        return 1 + max(place for taps in self.phases for _, place in taps)


@dataclass(frozen=True)
class Convolution:
    """Of fp32 tensors, every channel with every other."""

    x: GraphInput
    weight: GraphInput
    channels: int
    out_channels: int
    transposed: bool
    along: tuple[Along, Along, Along]  # depth, height and width

    @property
    def batch(self) -> int:
        return self.x.spec.shape[0]

    @property
    def kernel(self) -> int:
        """Elements for a pair of channels."""
        return math.prod(dim.kernel for dim in self.along)

    @property
    def taps(self) -> tuple[int, ...]:
        """Elements of the kernel that each phase has."""
        return tuple(math.prod(map(len, each)) for each in itertools.product(*(dim.phases for dim in self.along)))


def convolution_of(graph: Graph) -> tuple[Node, Convolution] | None:
    """The graph's one convolution over several channels, of an input by an input."""
    found = [node for node in graph.nodes if node.op == CONVOLUTION]
    inputs = {i.name: i for i in graph.inputs}
    if len(found) != 1:
        return None
    (node,) = found
    x, weight = (inputs.get(ref.name) if isinstance(ref, Ref) else None for ref in node.args[:2])
    if x is None or weight is None or node.args[8] != 1 or x.spec.dtype != "float32" != weight.spec.dtype:
        return None
    if weight.spec.dtype != x.spec.dtype or math.prod(x.spec.shape) >= 1 << 31:
        return None
    along = _dimensions(node, x, weight)
    if along is None:
        return None
    transposed = bool(node.args[6])
    out_channels = node.outputs[0].shape[1]
    return node, Convolution(x, weight, x.spec.shape[1], out_channels, transposed, along)


def _dimensions(node: Node, x: GraphInput, weight: GraphInput) -> tuple[Along, Along, Along] | None:
    stride, padding, dilation = (integers(node.args[k]) for k in (3, 4, 5))
    sizes = zip(x.spec.shape[2:], node.outputs[0].shape[2:], weight.spec.shape[2:], strict=True)
    found = [Along(1, 1, 1, 1, 1, 0, 0, 0, (((0, 0),),))] * (DIMS - len(stride))
    for (size, results, kernel), s, p, d in zip(sizes, stride, padding, dilation, strict=True):
        if node.args[6]:
            found.append(_scattered(size, results, kernel, s, p, d))
        elif s == 1:
            taps = tuple((t, t * d) for t in range(kernel))
            found.append(Along(size, results, kernel, 1, results, -p, -p, d, (taps,)))
        else:
            return None
    depth, height, width = found
    return depth, height, width


def _scattered(size: int, results: int, kernel: int, stride: int, padding: int, dilation: int) -> Along:
    """Result o has element t of input i where o + padding = stride * i + dilation * t."""
    by_phase = [
        [
            (t, (phase + padding - t * dilation) // stride)
            for t in range(kernel)
            if _meets(phase, t, stride, padding, dilation)
        ]
        for phase in range(stride)
    ]
    least = min(shift for taps in by_phase for _, shift in taps)
    phases = tuple(tuple(sorted(((t, s - least) for t, s in taps), key=lambda tap: tap[1])) for taps in by_phase)
    return Along(size, results, kernel, stride, -(-results // stride), least, padding, -dilation, phases)


def _meets(phase: int, element: int, stride: int, padding: int, dilation: int) -> bool:
    """Whether results of the phase have the kernel's element of any input."""
    return (phase + padding - element * dilation) % stride == 0
