"""KernelBench level 1, tasks 41-46: max and average pooling in one, two and three dimensions."""

import torch
from torch import nn

BATCH_1D, LENGTH = 64, 65536
PLANES = (32, 64, 512, 512)
AVERAGED_PLANES = (16, 64, 2048, 2048)
VOLUMES = (16, 32, 128, 128, 128)
AVERAGED_VOLUMES = (16, 32, 128, 128, 256)
DTYPE = torch.float32


class MaxPool1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool1d(8, stride=1, padding=4, dilation=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


class MaxPool2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(4, stride=1, padding=1, dilation=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


class MaxPool3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool3d(3, stride=2, padding=1, dilation=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


class AvgPool1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool1d(8, stride=1, padding=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


class AvgPool2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool2d(11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


class AvgPool3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool3d(3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


def get_max_pool1d_inputs():
    return [torch.rand(BATCH_1D, 192, LENGTH, dtype=DTYPE)]


def get_avg_pool1d_inputs():
    return [torch.rand(BATCH_1D, 128, LENGTH, dtype=DTYPE)]


def get_max_pool2d_inputs():
    return [torch.rand(PLANES, dtype=DTYPE)]


def get_avg_pool2d_inputs():
    return [torch.rand(AVERAGED_PLANES, dtype=DTYPE)]


def get_max_pool3d_inputs():
    return [torch.rand(VOLUMES, dtype=DTYPE)]


def get_avg_pool3d_inputs():
    return [torch.rand(AVERAGED_VOLUMES, dtype=DTYPE)]


def get_init_inputs():
    return []
