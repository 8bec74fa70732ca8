"""Depthwise convolutions, indices into rows, and losses that are a mean over rows; each module with its inputs."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from cutesmith_evaluator.names import snake_case


class Depthwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 6, 3, padding=1, groups=6)

    def forward(self, x):
        return F.relu(self.conv(x)) * x


class DepthwiseMultiplied(nn.Module):
    """Two results of each channel."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 12, (3, 2), stride=(2, 1), padding=(0, 1), dilation=(1, 3), groups=6, bias=False)

    def forward(self, x):
        return self.conv(x)


class DepthwiseLine(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 5, padding=2, groups=4)

    def forward(self, x):
        return F.gelu(self.conv(x))


class DepthwiseVolume(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(4, 4, 2, groups=4)

    def forward(self, x):
        return self.conv(x)


class StripOfMeans(nn.Module):
    """A mean of windows that overlap, next to what is read element by element."""

    def forward(self, x):
        return F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - x


class MaximumOfComputed(nn.Module):
    """Windows of what is computed of each element and of its channel."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(-1, 2, 6).view(6, 1, 1))

    def forward(self, x):
        return F.relu(F.max_pool2d(torch.tanh(x * self.gain) + 1, 3, 2, 1) - 0.5)


class MeanOfComputed(nn.Module):
    def forward(self, x):
        return F.avg_pool3d(F.silu(x), 2)


class LongDepthwiseLine(DepthwiseLine):
    """Lines that several blocks share."""


class LineOfMaxima(nn.Module):
    def forward(self, x):
        return F.max_pool1d(x, 5, stride=3, padding=2, dilation=2)


class LineOfComputed(nn.Module):
    """Means of what is computed of each element and of its channel; the last window reaches past the padding."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(-1, 2, 3).view(3, 1))

    def forward(self, x):
        return F.avg_pool1d(torch.tanh(x * self.gain), 4, 3, 1, True, False) + 0.25


class LineOfHalves(nn.Module):
    def forward(self, x):
        return F.avg_pool1d(x, 7, 1, 3)


class LineNextToItself(nn.Module):
    def forward(self, x):
        return F.max_pool1d(x, 3, 1, 1) - x


class CrossEntropy(nn.Module):
    def forward(self, x, t):
        return F.cross_entropy(x, t, ignore_index=3)


class CrossEntropySum(nn.Module):
    def forward(self, x, t):
        return F.cross_entropy(x * 2, t, reduction="sum")


class CrossEntropyRows(nn.Module):
    def forward(self, x, t):
        return F.cross_entropy(x, t, reduction="none")


class SmoothedCrossEntropy(nn.Module):
    def forward(self, x, t):
        return F.cross_entropy(x, t, label_smoothing=0.1)


class Chosen(nn.Module):
    def forward(self, x, t):
        return torch.softmax(x, 1).gather(1, t[:, None])


class RowDistances(nn.Module):
    def forward(self, x, y):
        return F.relu(1 - torch.norm(x - y, dim=1)).mean(), (x - y).abs().amax(1).max()


class MeanOfSoftmax(nn.Module):
    """A divergence: all elements of what was made row by row."""

    def forward(self, x, y):
        return F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean")


SHAPES = {
    "DepthwiseLine": (3, 4, 33),
    **dict.fromkeys(("DepthwiseVolume", "MeanOfComputed"), (2, 4, 5, 6, 7)),
    "LongDepthwiseLine": (2, 4, 1030),
    "LineOfMaxima": (2, 3, 3084),
    "LineOfComputed": (2, 3, 3083),
    "LineNextToItself": (3, 1, 1040),
    "LineOfHalves": (2, 2, 1048),
}
DTYPES = {"LineOfHalves": torch.bfloat16}
INDEXED = ("CrossEntropy", "CrossEntropySum", "CrossEntropyRows", "SmoothedCrossEntropy", "Chosen")
PAIRS = ("RowDistances", "MeanOfSoftmax")


def inputs_of(name):
    """Seeded inputs for a class: standard normal, and places in rows."""
    torch.manual_seed(1)
    dtype = DTYPES.get(name, torch.float32)
    if name in INDEXED:
        return [torch.randn(37, 96).to(dtype), torch.randint(0, 96, (37,))]
    shapes = ((37, 96), (37, 96)) if name in PAIRS else (SHAPES.get(name, (2, 6, 9, 11)),)
    return [torch.randn(shape).to(dtype) for shape in shapes]


for _name, _class in dict(globals()).items():
    if isinstance(_class, type) and _class.__module__ == __name__:
        globals()[f"get_{snake_case(_name)}_inputs"] = partial(inputs_of, _name)
