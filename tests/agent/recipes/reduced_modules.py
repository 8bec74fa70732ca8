"""Norms of channels, reductions over any dimension, scans and pooling; each module with its inputs."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from cutesmith_evaluator.names import snake_case


class EvalBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(6)
        nn.init.normal_(self.norm.get_buffer("running_mean"))
        nn.init.uniform_(self.norm.get_buffer("running_var"), 0.5, 2)

    def forward(self, x):
        return F.relu(self.norm(x * 2)) + x


class EvalBatchNorm1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(12, affine=False)

    def forward(self, x):
        return self.norm(x)


class EvalBatchNorm3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm3d(4)

    def forward(self, x):
        return self.norm(x)


class BatchStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(6, track_running_stats=False)

    def forward(self, x):
        return torch.sigmoid(self.norm(x))


class BatchStatistics1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(12, track_running_stats=False)

    def forward(self, x):
        return self.norm(x)


class Instances(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(6, affine=True)
        nn.init.normal_(self.norm.weight)

    def forward(self, x):
        return F.gelu(self.norm(x) * 2)


class TrackedInstances(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm1d(6, affine=True, track_running_stats=True)
        nn.init.normal_(self.norm.weight)

    def forward(self, x):
        return self.norm(x.flatten(2))


class Groups(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(3, 6)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return F.silu(self.norm(x + 1)) * x


class GroupsOfOne(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(6, 6, affine=False)

    def forward(self, x):
        return self.norm(x)


class OneGroup(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(1, 12)

    def forward(self, x):
        return self.norm(x)


class ChannelRootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(0.5, 2, 6).view(6, 1, 1))

    def forward(self, x):
        y = F.relu(x) + 0.1
        return y / torch.sqrt(torch.mean(y * y, dim=1, keepdim=True) + 1e-5) * self.gain - x


class ChannelLayerNorm(nn.Module):
    """As ConvNeXt has it: over the channels of NCHW, written out."""

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-6)


class MiddleSums(nn.Module):
    def forward(self, x):
        return x.sum(1, keepdim=True), x.mean(1, keepdim=True)


class MiddleExtremes(nn.Module):
    def forward(self, x):
        return x.amax(1), x.amin(1)


class MiddlePlaces(nn.Module):
    def forward(self, x):
        return x.argmax(1), x.argmin(1)


class MiddleMaximum(nn.Module):
    def forward(self, x):
        values, indices = torch.max(x, 1)
        return values, indices


class FirstProduct(nn.Module):
    def forward(self, x):
        return torch.prod(1 + x * 0.1, 0)


class OuterAndInner(nn.Module):
    """Over the first and the last dimension at once."""

    def forward(self, x):
        return x.sum((0, 2))


class MiddleSoftmax(nn.Module):
    def forward(self, x):
        return F.softmax(x * 3, 1)


class MiddleLogSoftmax(nn.Module):
    def forward(self, x):
        return F.log_softmax(F.relu(x), 1)


class ChannelUnit(nn.Module):
    def forward(self, x):
        return F.normalize(x, dim=1)


class BothSums(nn.Module):
    """Of a square: over its rows and over its columns."""

    def forward(self, x):
        return x.sum(0) * x.sum(1)


class HalfChannels(nn.Module):
    def forward(self, x):
        return F.softmax(x, 1)


class LoneMiddle(nn.Module):
    """Next to a last dimension of one element."""

    def forward(self, x):
        return F.softmax(x, 1)


class ScanOfExponentials(nn.Module):
    def forward(self, x):
        return torch.cumsum(x.exp(), 1) - x


class ScanFromTheEnd(nn.Module):
    def forward(self, x):
        return torch.cumsum(x.flip(1), 1).flip(1) * 2


class ScanWithoutItself(nn.Module):
    """Written in the two ways that people write it."""

    def forward(self, x):
        sums = torch.cumsum(x, 1)
        products = torch.cumprod((1 + x * 0.1)[:, :-1], 1)
        one, zero = torch.ones_like(x[:, :1]), torch.zeros_like(x[:, :1])
        return torch.cat((zero, sums[:, :-1]), 1), torch.cat((one, products), 1)


class MiddleScan(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 1)


class PaddedMaximum(nn.Module):
    def forward(self, x):
        return F.relu(F.max_pool2d(x, 3, 2, 1)) + 1


class DilatedMaximum(nn.Module):
    def forward(self, x):
        return F.max_pool1d(x, 8, 1, 4, dilation=3, ceil_mode=True)


class VolumeMaximum(nn.Module):
    def forward(self, x):
        return F.max_pool3d(x, 2, 2)


class PaddedMean(nn.Module):
    """The last windows reach past the padding, which counts; what is past it does not."""

    def forward(self, x):
        return F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)


class MeanInside(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, (2, 3), (2, 1), (0, 1), count_include_pad=False)


class DividedMean(nn.Module):
    def forward(self, x):
        return F.avg_pool3d(x, 2, 2, divisor_override=3)


SHAPES = {
    "DilatedMaximum": (2, 3, 70),
    **dict.fromkeys(("VolumeMaximum", "DividedMean"), (2, 3, 6, 4, 9)),
    **dict.fromkeys(("PaddedMaximum", "PaddedMean", "MeanInside"), (2, 3, 13, 16)),
    **dict.fromkeys(("ScanOfExponentials", "ScanFromTheEnd", "ScanWithoutItself"), (5, 37)),
    **dict.fromkeys(("EvalBatchNorm1d", "BatchStatistics1d", "OneGroup", "FirstProduct"), (20, 12)),
    "EvalBatchNorm3d": (2, 4, 3, 5, 2),
    **dict.fromkeys(("MiddleSums", "MiddleExtremes", "MiddlePlaces", "MiddleMaximum", "MiddleSoftmax"), (3, 67, 35)),
    "MiddleLogSoftmax": (2, 128, 40),
    "BothSums": (32, 32),
    "LoneMiddle": (4, 24, 1),
}
DTYPES = {"HalfChannels": torch.bfloat16}


def inputs_of(name):
    """Seeded inputs for a class, standard normal."""
    torch.manual_seed(1)
    return [torch.randn(SHAPES.get(name, (2, 6, 8, 8))).to(DTYPES.get(name, torch.float32))]


for _name, _class in dict(globals()).items():
    if isinstance(_class, type) and _class.__module__ == __name__:
        globals()[f"get_{snake_case(_name)}_inputs"] = partial(inputs_of, _name)
