/** The tanh-GELU of GPT-2, with what CuteSmith calls it with: `examples/new_gelu.py`. */
export const EXAMPLE = `"""GELU by its tanh approximation, spelled out as GPT-2's code did before torch had it."""

import math

import torch
from torch import nn

ROWS, FEATURES = 8192, 4096
DTYPE = torch.float32


class NewGELU(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs():
    return [torch.randn(ROWS, FEATURES, dtype=DTYPE)]


def get_init_inputs():
    return []
`;
