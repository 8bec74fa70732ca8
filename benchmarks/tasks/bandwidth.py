"""An operator of each kind that memory bounds, over sizes: bytes per second of each (benchmarks/bandwidth.py)."""

import torch
import torch.nn.functional as F
from torch import nn

SHAPE = (4096, 4096)


class Pointwise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(x)


class RowSoftmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


class LayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(SHAPE[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class Sum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum()


def get_inputs():
    return [torch.randn(SHAPE)]


def get_sum_inputs():
    return [torch.rand(SHAPE)]  # of one sign: what is left of a sum that cancels is mostly its rounding


def get_init_inputs():
    return []
