"""Convolutions over several channels, which stay PyTorch's, with what follows them; each module with its inputs."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from cutesmith_evaluator.names import snake_case


class PointwiseTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 12, (2, 3), padding=(1, 0))
        self.bias = nn.Parameter(torch.randn(12, 1, 1))

    def forward(self, x):
        return F.hardswish(self.conv(x)) + self.bias


class NormTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1, output_padding=1, bias=False)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x):
        return self.norm(F.gelu(self.conv(x)))


class VolumeTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(4, 12, (1, 2, 2), stride=(1, 2, 1))

    def forward(self, x):
        return torch.tanh(self.conv(x)) * 2


class LeastChannel(nn.Module):
    """A result of rows that lie side by side, or not where channels are innermost."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 20, 3)

    def forward(self, x):
        return torch.tanh(self.conv(x).amin(1, keepdim=True))


class PooledTail(nn.Module):
    """Windows of what is computed of a convolution's results, with their channels innermost or not."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 12, 2)

    def forward(self, x):
        return F.mish(F.max_pool2d(F.hardswish(self.conv(x) - 0.5), 3, 2, 1)) * 2


class TurnedTail(nn.Module):
    """Rows of positions and of channels that take whole accesses, next to what lies in the results' order."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 12, 3, padding=1)

    def forward(self, x):
        return torch.tanh(self.conv(x)) * 2 + x


class NoTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3)

    def forward(self, x):
        return self.conv(x)


SHAPES = {"VolumeTail": (2, 4, 3, 7, 6), "LeastChannel": (2, 12, 9, 12), "TurnedTail": (2, 12, 9, 12)}


def inputs_of(name):
    """Standard normal inputs for a class."""
    return [torch.randn(SHAPES.get(name, (2, 4, 7, 9)))]


for _name, _class in dict(globals()).items():
    if isinstance(_class, type) and _class.__module__ == __name__:
        globals()[f"get_{snake_case(_name)}_inputs"] = partial(inputs_of, _name)
