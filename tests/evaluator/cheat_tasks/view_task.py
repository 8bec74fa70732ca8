"""A module that computes nothing."""

import torch
from torch import nn


class View(nn.Module):
    def forward(self, x):
        return x.t()


def get_inputs():
    return [torch.randn(6, 64)]
