"""How much arithmetic a graph needs, and how little memory traffic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from cutesmith_evaluator.types import GraphInput, Node, Ref, TensorSpec
from cutesmith_evaluator.worker.graphs import references

Specs = Mapping[str, tuple[TensorSpec, ...]]

_MOVES = {"view", "permute", "expand", "slice", "select", "unsqueeze", "squeeze", "cat", "clone", "_to_copy", "full"}
_MOVES |= {"full_like", "scalar_tensor", "arange", "embedding", "gather", "index", "index_select", "constant_pad_nd"}


def flops(inputs: Sequence[GraphInput], nodes: Sequence[Node]) -> int:
    """Multiply-adds of products count two; other ops one per element they read or write, moves none."""
    specs: dict[str, tuple[TensorSpec, ...]] = {each.name: (each.spec,) for each in inputs}
    specs |= {node.name: node.outputs for node in nodes}
    return sum(_node_flops(node, specs) for node in nodes)


def minimal_bytes(inputs: Sequence[GraphInput], outputs: Sequence[TensorSpec], used: set[str]) -> int:
    """Bytes of what is read and written, each once: used arguments, state, outputs. Repeated elements count once."""
    return sum(_size(each.spec) for each in inputs if each.name in used) + sum(map(_size, outputs))


def _size(spec: TensorSpec) -> int:
    distinct = math.prod(n for n, stride in zip(spec.shape, spec.strides, strict=True) if stride or not n)
    return distinct * getattr(torch, spec.dtype).itemsize


def _node_flops(node: Node, specs: Specs) -> int:
    name = node.op.split(".")[1]
    if name in _MOVES:
        return 0
    operands = [specs[ref.name][ref.index] for ref in references((*node.args, node.kwargs))]
    if name in _PRODUCTS:
        return _PRODUCTS[name](operands, node.outputs[0])
    return max(_elements(spec) for spec in (*operands, *node.outputs[:1]))


def _elements(spec: TensorSpec) -> int:
    return math.prod(spec.shape)


def _matmul(operands: Sequence[TensorSpec], out: TensorSpec) -> int:
    return 2 * _elements(out) * operands[0].shape[-1]


def _addmm(operands: Sequence[TensorSpec], out: TensorSpec) -> int:
    return _matmul(operands[1:], out) + _elements(out)


def _convolution(operands: Sequence[TensorSpec], out: TensorSpec) -> int:
    return 2 * _elements(out) * (_elements(operands[1]) // operands[1].shape[0])


def _attention(operands: Sequence[TensorSpec], out: TensorSpec) -> int:
    query, key, value = operands[:3]
    scores = _elements(query) // query.shape[-1] * key.shape[-2] if query.shape[-1] else 0
    return 2 * scores * (query.shape[-1] + value.shape[-1])


_PRODUCTS: dict[str, Callable[[Sequence[TensorSpec], TensorSpec], int]] = {
    **dict.fromkeys(("linear", "matmul", "mm", "bmm", "mv", "dot"), _matmul),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _addmm),
    "convolution": _convolution,
    "scaled_dot_product_attention": _attention,
}


def used_names(nodes: Sequence[Node], outputs: Sequence[Ref]) -> set[str]:
    """Names of everything that a node or the result reads."""
    return {ref.name for node in nodes for ref in references((*node.args, node.kwargs))} | {ref.name for ref in outputs}
