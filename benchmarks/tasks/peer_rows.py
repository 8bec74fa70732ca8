"""Rows as libraries of kernels have them: statistics in fp32, parameters in fp32, results in the input's type."""

import torch
import torch.nn.functional as F
from torch import nn

ROWS, COLUMNS = 8192, 4096
DTYPE = torch.float32


class RowSoftmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


class RowRMSNorm(nn.Module):
    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(COLUMNS))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * scale * self.weight).to(x.dtype)


class RowLayerNorm(nn.Module):
    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(COLUMNS))
        self.bias = nn.Parameter(torch.zeros(COLUMNS))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x.float(), (COLUMNS,), self.weight, self.bias, self.eps).to(x.dtype)


class RowCrossEntropy(nn.Module):
    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x.float(), target, reduction="none")


def _rows():
    return [torch.randn(ROWS, COLUMNS).to(DTYPE)]


get_row_softmax_inputs = get_row_rms_norm_inputs = get_row_layer_norm_inputs = _rows


def get_row_cross_entropy_inputs():
    return [*_rows(), torch.randint(0, COLUMNS, (ROWS,))]
