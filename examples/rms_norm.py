"""LLaMA's RMSNorm: statistics in fp32, the weight in the model's dtype."""

import torch
from torch import nn

ROWS, FEATURES = 8192, 4096
DTYPE = torch.float32


class RMSNorm(nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-6, dtype: torch.dtype | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=dtype))
        self.eps = eps

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = hidden_states.float()
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.eps)
        return self.weight * x.to(hidden_states.dtype)


def get_inputs():
    return [torch.randn(ROWS, FEATURES, dtype=DTYPE)]


def get_init_inputs():
    return [FEATURES, 1e-6, DTYPE]
