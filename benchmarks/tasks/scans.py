"""KernelBench level 1, tasks 89-93: cumulative sums and products along rows."""

import torch
from torch import nn

ROWS, COLUMNS = 32768, 32768
DTYPE = torch.float32


class CumulativeSum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, dim=1)


class CumulativeProduct(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumprod(x, dim=1)


class ReverseCumulativeSum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x.flip(1), dim=1).flip(1)


class ExclusiveCumulativeSum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sums = torch.cumsum(x.narrow(1, 0, x.size(1) - 1), dim=1)
        return torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), sums), dim=1)


class MaskedCumulativeSum(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x * mask, dim=1)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS, dtype=DTYPE)]


def get_masked_cumulative_sum_inputs():
    return [torch.rand(ROWS, COLUMNS, dtype=DTYPE), torch.randint(0, 2, (ROWS, COLUMNS)).bool()]


def get_init_inputs():
    return []
