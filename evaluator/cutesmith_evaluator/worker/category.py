"""What kind of work a graph is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutesmith_evaluator.types import Category, GraphInput, TensorSpec

_HEAVY: dict[Category, set[str]] = {
    "attention": {"scaled_dot_product_attention", "_native_multi_head_attention"},
    "conv": {"conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"},
    "matmul": {"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "einsum", "bilinear", "mv", "dot"},
    "pooling": {f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_avg", "adaptive_max") for n in (1, 2, 3)},
    "scan": {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"},
}
_NORM = {"layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm"}
_SOFTMAX = {"softmax", "log_softmax"}
_REDUCTION = {"sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "var", "std", "var_mean"}
_REDUCTION |= {"std_mean", "any", "all", "logsumexp", "norm", "linalg_vector_norm", "nansum", "cosine_similarity"}
_SCALES = {"div", "div_", "rsqrt", "sqrt", "reciprocal"}


def categorise(surface: Sequence[str], inputs: Sequence[GraphInput], outputs: Sequence[TensorSpec]) -> Category:
    """From the ops as the user's code called them, so that a loss is known before it is decomposed.

    Two kinds of heavy work, or heavy and row-wise work, are "mixed"; attention with its projections is attention.
    """
    names = [op.split(".")[1] for op in surface if "." in op]
    heavy: set[Category] = {kind for kind, ops in _HEAVY.items() if ops & set(names)}
    row = _row_wise(set(names), inputs, outputs)
    if row == "softmax" and heavy == {"matmul"} and sum(name in _HEAVY["matmul"] for name in names) > 1:
        return "attention"
    if heavy == {"attention", "matmul"} and row is None:
        return "attention"
    if len(heavy) > 1 or (heavy and row):
        return "mixed"
    return heavy.pop() if heavy else row or "pointwise"


def _row_wise(names: set[str], inputs: Sequence[GraphInput], outputs: Sequence[TensorSpec]) -> Category | None:
    if any(name.endswith("_loss") or name in ("kl_div", "binary_cross_entropy_with_logits") for name in names):
        return "loss"
    if names & _NORM:
        return "mixed" if names & _SOFTMAX else "normalisation"
    if names & _SOFTMAX and any(output.shape for output in outputs):
        return "softmax"
    if names & (_REDUCTION | _SOFTMAX):
        return _by_hand(names, inputs, outputs)
    return None


def _by_hand(names: set[str], inputs: Sequence[GraphInput], outputs: Sequence[TensorSpec]) -> Category:
    """Norms, softmaxes and losses written out of reductions."""
    arguments = [each.spec for each in inputs if each.kind == "argument"]
    if not any(output.shape for output in outputs):
        return "loss" if len(arguments) > 1 else "reduction"
    largest = max((math.prod(spec.shape) for spec in arguments), default=0)
    keeps_size = any(math.prod(output.shape) == largest for output in outputs)
    if keeps_size and "exp" in names:
        return "softmax"
    return "normalisation" if keeps_size and names & _SCALES else "reduction"
