"""KernelBench level 1, tasks 82-85: depthwise convolutions."""

import torch
from torch import nn

SQUARE = (16, 64, 512, 512)
FEW_CHANNELS = (64, 8, 512, 512)
WIDE = (64, 128, 256, 512)
ASYMMETRIC = (32, 128, 128, 256)
DTYPE = torch.float32


class DepthwiseSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv2d = nn.Conv2d(SQUARE[1], SQUARE[1], 3, groups=SQUARE[1], bias=False, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


class DepthwiseColumn(nn.Module):
    def __init__(self):
        super().__init__()
        channels = FEW_CHANNELS[1]
        self.conv2d = nn.Conv2d(channels, channels, (3, 1), groups=channels, bias=False, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


class DepthwiseWide(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv2d = nn.Conv2d(WIDE[1], WIDE[1], 3, groups=WIDE[1], bias=False, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


class DepthwiseAsymmetric(nn.Module):
    def __init__(self):
        super().__init__()
        channels = ASYMMETRIC[1]
        self.conv2d = nn.Conv2d(channels, channels, (3, 7), groups=channels, bias=False, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


def get_depthwise_square_inputs():
    return [torch.rand(SQUARE, dtype=DTYPE)]


def get_depthwise_column_inputs():
    return [torch.rand(FEW_CHANNELS, dtype=DTYPE)]


def get_depthwise_wide_inputs():
    return [torch.rand(WIDE, dtype=DTYPE)]


def get_depthwise_asymmetric_inputs():
    return [torch.rand(ASYMMETRIC, dtype=DTYPE)]


def get_init_inputs():
    return []
