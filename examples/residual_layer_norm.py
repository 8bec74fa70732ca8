"""The seam between two pre-norm transformer blocks: add to the residual stream, normalise for the next block."""

import torch
from torch import nn

ROWS, FEATURES = 8192, 4096
DTYPE = torch.float32


class ResidualLayerNorm(nn.Module):
    def __init__(self, hidden_size: int, dropout: float = 0.1, dtype: torch.dtype | None = None):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(hidden_size, dtype=dtype)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        residual = residual + self.dropout(x)
        return self.norm(residual), residual


def get_inputs():
    return [torch.randn(ROWS, FEATURES, dtype=DTYPE), torch.randn(ROWS, FEATURES, dtype=DTYPE)]


def get_init_inputs():
    return [FEATURES, 0.1, DTYPE]
