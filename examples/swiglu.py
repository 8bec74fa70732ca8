"""The pointwise half of a SwiGLU feed-forward block, after one matmul that makes gate and up together."""

import torch
import torch.nn.functional as F
from torch import nn

ROWS, FEATURES = 8192, 4096
DTYPE = torch.float32


class SwiGLU(nn.Module):
    def forward(self, gate_up: torch.Tensor) -> torch.Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs():
    return [torch.randn(ROWS, 2 * FEATURES, dtype=DTYPE)]


def get_init_inputs():
    return []
