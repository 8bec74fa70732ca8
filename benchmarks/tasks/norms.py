"""KernelBench level 1, tasks 33-40: norms of channels, of rows and of whole tensors."""

import torch
from torch import nn

BATCH, FEATURES, GROUPS, SIDE = 112, 64, 8, 512
BATCHED = 64  # of the batch norm
NORMALIZED = (64, 256, 256)
ROWS, COLUMNS = 32768, 65535
DTYPE = torch.float32


class BatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(FEATURES, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(x)


class InstanceNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(FEATURES, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inorm(x)


class GroupNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gn = nn.GroupNorm(GROUPS, FEATURES, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gn(x)


class ChannelRMSNorm(nn.Module):
    def __init__(self, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)


class FrobeniusNorm(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.norm(x, p="fro")


class L1Norm(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


class L2Norm(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.norm(x, p=2, dim=1, keepdim=True)


class LayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(list(NORMALIZED), dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ln(x)


def get_inputs():
    return [torch.rand(BATCH, FEATURES, SIDE, SIDE, dtype=DTYPE)]


def get_batch_norm_inputs():
    return [torch.rand(BATCHED, FEATURES, SIDE, SIDE, dtype=DTYPE)]


def get_layer_norm_inputs():
    return [torch.rand(16, *NORMALIZED, dtype=DTYPE)]


def get_l1_norm_inputs():
    return [torch.rand(ROWS, COLUMNS, dtype=DTYPE)]


def get_l2_norm_inputs():
    return [torch.rand(ROWS, COLUMNS, dtype=DTYPE)]


def get_init_inputs():
    return []
