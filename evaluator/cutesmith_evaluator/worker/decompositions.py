"""Which ops a graph may hold.

A traced module is brought to torch's core aten ops (`torch.export.default_decompositions`), with these exceptions.

Whole, though torch would decompose them:
- normalisation: `layer_norm`, `rms_norm`, `group_norm`;
- activations: `silu`, `mish`, `hardswish`, `hardsigmoid`, `softplus`, `log_sigmoid_forward`, `threshold`
  (`gelu`, `elu`, `leaky_relu`, `hardtanh`, `relu`, `sigmoid` and `tanh` are core ops; `relu6` becomes `hardtanh`,
  `selu` becomes `elu`, `glu` becomes slices, `sigmoid` and `mul`);
- arithmetic: `masked_fill`, `addcmul`, `addcdiv`, `lerp`, `clamp_min`, `clamp_max`, `rsub`, `square`;
- products: `linear`, `matmul`, `scaled_dot_product_attention`.

Core ops that people may expect to be decomposed, and are not: `_softmax`, `_log_softmax`, `var.correction`,
`linalg_vector_norm`, `convolution`, `_native_batch_norm_legit_no_training`, `embedding`, `cumsum`, `amax`, `max.dim`.

Decomposed further than core aten: `split_with_sizes` (so also `chunk` and `split`) becomes one `slice` per part.

Losses (`mse_loss`, `huber_loss`, `cross_entropy_loss`, `kl_div`, …), `std`, `logsumexp`, `cosine_similarity`, `einsum`
and everything else are decomposed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """A table for any number of `ExportedProgram.run_decompositions`, with the ops that are registered by now."""
    table = torch.export.default_decompositions()
    for op in _whole():
        table.pop(op, None)
    table[_aten.split_with_sizes.default] = _split_into_slices
    return dict(table)


def _whole() -> list[Any]:
    packets = (
        *(_aten.layer_norm, _aten.rms_norm, _aten.group_norm),
        *(_aten.silu, _aten.mish, _aten.hardswish, _aten.hardsigmoid),
        *(_aten.softplus, _aten.log_sigmoid_forward, _aten.threshold),
        *(_aten.masked_fill, _aten.addcmul, _aten.addcdiv, _aten.lerp),
        *(_aten.clamp_min, _aten.clamp_max, _aten.rsub, _aten.square),
        *(_aten.linear, _aten.matmul, _aten.scaled_dot_product_attention),
    )
    return [getattr(packet, overload) for packet in packets for overload in packet.overloads()]


def _split_into_slices(tensor: Tensor, sizes: list[int], dim: int = 0) -> list[Tensor]:
    parts: list[Tensor] = []
    start = 0
    for size in sizes:
        parts.append(_aten.slice.Tensor(tensor, dim, start, start + size))
        start += size
    return parts
