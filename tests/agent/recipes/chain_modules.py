"""Modules that no single kernel of the recipes computes; each with its inputs."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from cutesmith_evaluator.names import snake_case


class NormThenPool(nn.Module):
    """A convolution, a norm, and windows of its results."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, 8).view(8, 1, 1))

    def forward(self, x):
        return torch.clamp(F.max_pool2d(self.norm(self.conv(x)) * self.scale, 2), -0.5, 0.5)


class ConvolutionOfPooled(nn.Module):
    """What PyTorch does stands between two kernels."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 2)

    def forward(self, x):
        return torch.sigmoid(self.conv(F.avg_pool2d(x, 2, ceil_mode=True))) * 2


class NormThenMean(nn.Module):
    """Reductions over dimensions that have nothing in common, one of them over single elements; no library."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(9)

    def forward(self, index):  # as a local of the file's functions is named
        return torch.softmax(self.norm(index).mean((2, 3), keepdim=True).sum((2, 3)), 1)


SHAPES = {"NormThenMean": (3, 5, 8, 9)}


def inputs_of(name):
    """Standard normal inputs for a class."""
    torch.manual_seed(1)
    return [torch.randn(SHAPES.get(name, (2, 4, 9, 11)))]


for _name, _class in dict(globals()).items():
    if isinstance(_class, type) and _class.__module__ == __name__:
        globals()[f"get_{snake_case(_name)}_inputs"] = partial(inputs_of, _name)
