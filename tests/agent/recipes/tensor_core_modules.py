"""Convolutions and attention, which their recipes compute on tensor cores; each with its inputs."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from cutesmith_evaluator.names import snake_case


class Plane(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 3, padding=1)
        self.scale = nn.Parameter(torch.randn(10, 1, 1))

    def forward(self, x):
        return F.hardswish(self.conv(x)) * self.scale


class ManyChannels(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(40, 72, 3)

    def forward(self, x):
        return torch.relu(self.conv(x)) + 1


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(9, 24, (2, 1, 3), bias=False)

    def forward(self, x):
        return F.leaky_relu(self.conv(x), 0.2)


class Attention(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


class Causal(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Written(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1) * 0.125, -1) @ v


class WrittenMask(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / 8
        kept = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        return torch.softmax(scores.masked_fill(~kept, float("-inf")), -1) @ v


_HEADS = ((1, 2, 40, 64), (1, 2, 72, 64), (1, 2, 72, 64))
SHAPES = {
    "Plane": ((2, 3, 9, 11),),
    "ManyChannels": ((1, 40, 9, 12),),
    "Volume": ((1, 9, 3, 5, 9),),
    "Attention": _HEADS,
    "Causal": ((1, 2, 72, 64),) * 3,
    "Written": _HEADS,
    "WrittenMask": ((1, 2, 40, 32),) * 3,
}
DTYPES = {}


def inputs_of(name):
    """Seeded standard normal inputs for a class."""
    generator = torch.Generator().manual_seed(0)
    dtype = DTYPES.get(name, torch.float32)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES[name]]


for _name in SHAPES:
    globals()[f"get_{snake_case(_name)}_inputs"] = partial(inputs_of, _name)
