"""Depthwise convolutions: each result is a weighted sum of a window of one channel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cutesmith_evaluator.types import Node, Ref

from .contract import Unsupported
from .ir import Expr
from .pools import MOST_TAPS, Emit, input_of, plane_of, windows_of
from .space import Index, contiguous, unravel
from .views import integers, source

if TYPE_CHECKING:
    from .lowering import Lowerer


def _convolution(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    """One input channel each: the others' sums over channels are products of matrices."""
    x, weight = (lowerer.spec(ref) for ref in node.args[:2] if isinstance(ref, Ref))
    stride, padding, dilation = (integers(node.args[k]) for k in (3, 4, 5))
    transposed, groups = node.args[6], node.args[8]
    taps = math.prod(weight.shape[2:])
    if transposed or groups != x.shape[1] or weight.shape[1] != 1 or groups == 1 or taps > MOST_TAPS:
        raise Unsupported(f"no recipe covers {node.op} over more than one channel", line=node.line)
    given, kernel = input_of(lowerer, source(node)), input_of(lowerer, node.args[1])  # type: ignore[arg-type]
    if given is None or kernel is None:
        raise Unsupported(f"no recipe covers {node.op} of a computed tensor", line=node.line)
    channel, _ = unravel(lowerer.space, index[1], (x.shape[1], weight.shape[0] // x.shape[1]))
    windows = windows_of(lowerer, index, x.shape, contiguous(x.shape), weight.shape[2:], stride, padding, dilation)
    plane = plane_of(lowerer, (index[0], channel), contiguous(x.shape))
    b = lowerer.builder
    weights = b.load(kernel.name, kernel.spec.dtype, lowerer.strides(index[1].times(taps)), 0)
    load = b.load(given.name, given.spec.dtype, lowerer.strides(plane), 0)
    result = b.pool("dot", load, (plane.terms, plane.offset), windows, weight=weights)
    bias = node.args[2]
    return b.op("add", result, lowerer.value(bias, index[1:2])) if isinstance(bias, Ref) else result


CONVOLUTIONS: dict[str, Emit] = {"convolution": _convolution}
