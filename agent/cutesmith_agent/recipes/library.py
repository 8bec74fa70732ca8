"""What a kernel file leaves to PyTorch: convolutions over several channels. Their results are the kernel's inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref

from .contract import Unsupported
from .ir import Expr
from .space import Index, channels_last
from .views import integers

if TYPE_CHECKING:
    from .lowering import Lowerer

WITH_BIAS = "cutesmith.with_bias.default"
_FORMATS = {2: "torch.channels_last", 3: "torch.channels_last_3d"}
_CONVOLUTION = "aten.convolution.default"


class Call(Protocol):
    """What a file does before its last kernel runs: a library's function, or an earlier kernel (`steps.py`)."""

    @property
    def result(self) -> GraphInput: ...
    @property
    def operands(self) -> tuple[GraphInput, ...]: ...
    @property
    def memory_format(self) -> str | None: ...
    @property
    def functions(self) -> tuple[str, ...]: ...
    @property
    def sections(self) -> tuple[str, ...]: ...
    @property
    def constants(self) -> tuple[tuple[str, int, str], ...]: ...
    @property
    def warming(self) -> tuple[str, ...]: ...
    @property
    def schedule(self) -> dict[str, int]: ...
    @property
    def ops(self) -> tuple[str, ...]: ...
    @property
    def least(self) -> tuple[int, int]: ...
    @property
    def is_as_tf32(self) -> bool: ...

    def lines(self, names: dict[str, str], turned: GraphInput | None) -> list[str]: ...


@dataclass(frozen=True)
class LibraryCall:
    """A call that the file makes before its kernel runs; `result`: the graph input that its result becomes."""

    result: GraphInput
    function: str  # "torch.conv2d"
    operands: tuple[GraphInput, ...]
    arguments: tuple[str, ...]  # after the operands, as written
    memory_format: str | None = None  # of the operands and the result: "torch.channels_last"
    sections: tuple[str, ...] = ()
    constants: tuple[tuple[str, int, str], ...] = ()
    warming: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    least: tuple[int, int] = (0, 0)  # compute capability
    is_as_tf32: bool = False  # in itself: PyTorch asks its own settings

    @property
    def schedule(self) -> dict[str, int]:
        return {}

    def lines(self, names: dict[str, str], turned: GraphInput | None) -> list[str]:
        """Statements that make the result; `turned`: what the file has a function for that puts channels innermost."""
        result, operands = names[self.result.name], [names[operand.name] for operand in self.operands]
        if self.memory_format is None:
            return [f"{result} = {self.function}({', '.join((*operands, *self.arguments))})"]
        given = [f"{operand}.contiguous(memory_format={self.memory_format})" for operand in operands]
        if turned == self.operands[0]:
            given[0] = f"_channels_last({operands[0]}, index)"
        return [
            f"{result} = {self.function}(",
            f"    {', '.join(given)},",
            f"    {', '.join(self.arguments)},",
            f").contiguous(memory_format={self.memory_format})  # as it is already, where cuDNN was asked so",
        ]

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of what is called."""
        return (self.function, "torch.Tensor.contiguous") if self.memory_format else (self.function,)


def declared(calls: tuple[Call, ...]) -> str:
    """Names of what the calls use, as a tuple is written."""
    names = tuple(dict.fromkeys(f'"{name}"' for call in calls for name in call.functions))
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def is_result(source: GraphInput) -> bool:
    """Whether an input of a graph is what a library's call gives."""
    return source.position is None and source.path is None


def without_library(graph: Graph, *, last: bool = False, alone: bool = False) -> tuple[Graph, tuple[LibraryCall, ...]]:
    """The rest of the graph, and the calls whose results it reads. Shapes are fixed where there are any.

    `alone`: a bias may be all that is left. `last`: the calls are given, and give, tensors with channels innermost.

    Biases stay in the rest: PyTorch adds them in a pass of their own. Raises Unsupported where nothing else is left."""
    inputs = {i.name: i for i in graph.inputs}
    calls: list[LibraryCall] = []
    nodes: list[Node] = []
    for node in graph.nodes:
        call = _convolution(node, inputs, last=last)
        if call is None:
            nodes.append(node)
            continue
        calls.append(call)
        bias = node.args[2]
        if isinstance(bias, Ref):
            nodes.append(replace(node, op=WITH_BIAS, args=(Ref(call.result.name), bias), kwargs={}))
    if not calls:
        return graph, ()
    if all(node.op == WITH_BIAS for node in nodes) and not (alone and nodes):
        raise Unsupported(f"no recipe covers {_CONVOLUTION} with nothing after it", line=graph.nodes[0].line)
    results = tuple(call.result for call in calls)
    return replace(graph, inputs=(*graph.inputs, *results), nodes=tuple(nodes), dynamic_dims=()), tuple(calls)


def _convolution(node: Node, inputs: dict[str, GraphInput], *, last: bool) -> LibraryCall | None:
    """The call for a convolution of an input by an input; None for all else, also where each channel has its own."""
    if node.op != _CONVOLUTION:
        return None
    x, weight = (inputs.get(ref.name) if isinstance(ref, Ref) else None for ref in node.args[:2])
    if x is None or weight is None:
        return None
    stride, padding, dilation, extra = (_written(integers(node.args[k])) for k in (3, 4, 5, 7))
    transposed, groups = bool(node.args[6]), node.args[8]
    if not transposed and groups == x.spec.shape[1] and weight.spec.shape[1] == 1 and groups != 1:
        return None
    dims = len(x.spec.shape) - 2
    name = node.name if not isinstance(node.args[2], Ref) else f"{node.name}_result"
    spec = node.outputs[0]
    form = _FORMATS.get(dims) if last else None
    result = GraphInput(name, "constant", replace(spec, strides=channels_last(spec.shape)) if form else spec)
    if transposed:
        arguments = ("None", stride, padding, extra, str(groups), dilation)
        return LibraryCall(result, f"torch.conv_transpose{dims}d", (x, weight), arguments, form)
    arguments = ("None", stride, padding, dilation, str(groups))
    return LibraryCall(result, f"torch.conv{dims}d", (x, weight), arguments, form)


def _written(values: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def _with_bias(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    result, bias = node.args
    assert isinstance(result, Ref)
    assert isinstance(bias, Ref)
    return lowerer.builder.op("add", lowerer.value(result, index), lowerer.value(bias, index[1:2]))


BIASED: dict[str, Callable[[Lowerer, Node, int, tuple[Index, ...]], Expr]] = {"with_bias": _with_bias}
