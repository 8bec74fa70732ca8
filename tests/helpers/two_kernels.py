"""A file with two classes that recipes cover."""

from __future__ import annotations

PAIR = """\
import torch
from torch import nn


class First(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


class Second(nn.Module):
    def forward(self, x):
        return torch.tanh(x) + 1.0


def get_inputs():
    return [torch.randn(64, 256)]
"""
