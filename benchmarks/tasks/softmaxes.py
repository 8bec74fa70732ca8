"""KernelBench level 1, tasks 23 and 24: softmax and log-softmax over very long rows."""

import torch
from torch import nn

ROWS, COLUMNS = 4096, 393216
DTYPE = torch.float32


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


class LogSoftmax(nn.Module):
    def __init__(self, dim: int = 1):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=self.dim)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS, dtype=DTYPE)]


def get_init_inputs():
    return []
