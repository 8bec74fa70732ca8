"""What the parts of a mixed task are: a chain is as hard as its dearest part, and that has a menu of its own."""

from __future__ import annotations

from cutesmith_evaluator.types import Category, Graph

_KINDS: tuple[tuple[Category, tuple[str, ...]], ...] = (  # the dearest first; op names as they begin
    ("attention", ("_scaled_dot_product", "scaled_dot_product", "_flash_attention", "_efficient_attention")),
    ("conv", ("convolution", "conv1d", "conv2d", "conv3d", "conv_transpose")),
    ("matmul", ("mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "mv", "addmv", "dot")),
    ("softmax", ("_softmax", "_log_softmax", "softmax", "log_softmax", "logsumexp")),
    ("normalisation", ("native_layer_norm", "native_group_norm", "_native_batch_norm", "native_batch_norm", "var",
                       "layer_norm", "rms_norm", "_fused_rms_norm", "group_norm", "batch_norm", "instance_norm")),
    ("reduction", ("sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod")),
    ("pooling", ("max_pool", "avg_pool", "_adaptive_avg_pool", "adaptive")),
    ("scan", ("cumsum", "cumprod", "logcumsumexp")),
)  # fmt: skip


def kinds(graph: Graph) -> tuple[Category, ...]:
    """The task's category; where that is mixed, those of its parts first, the dearest first."""
    if graph.category != "mixed":
        return (graph.category,)
    names = {node.op.split(".")[1] for node in graph.nodes if "." in node.op}
    found: list[Category] = [kind for kind, ops in _KINDS if any(_is_one_of(name, ops) for name in names)]
    return (*found, "mixed")


def _is_one_of(name: str, ops: tuple[str, ...]) -> bool:
    return any(name == op or (len(op) > 4 and name.startswith(op)) for op in ops)
