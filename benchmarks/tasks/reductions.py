"""KernelBench level 1, tasks 47-49 and 51-53: reductions over a middle dimension."""

import torch
from torch import nn

BATCH, LENGTH, WIDTH = 128, 4096, 4095
DTYPE = torch.float32


class Sum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=1, keepdim=True)


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mean(x, dim=1)


class Max(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.max(x, dim=1)[0]


class Argmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=1)


class Argmin(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmin(x, dim=1)


class Min(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.min(x, dim=1)[0]


def get_inputs():
    return [torch.rand(BATCH, LENGTH, WIDTH, dtype=DTYPE)]


def get_init_inputs():
    return []
