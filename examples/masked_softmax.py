"""Attention weights from scores: temperature, a causal mask with padding, softmax over the keys."""

import torch
from torch import nn

BATCH, HEADS, LENGTH = 4, 16, 1024
DTYPE = torch.float32


class MaskedSoftmax(nn.Module):
    def __init__(self, temperature: float = 1.0):
        super().__init__()
        self.temperature = temperature

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """scores: (batch, heads, queries, keys); mask: (batch, 1, queries, keys), true where a key is hidden."""
        scores = scores / self.temperature
        scores = scores.masked_fill(mask, float("-inf"))
        return torch.softmax(scores, dim=-1)


def get_inputs():
    scores = torch.randn(BATCH, HEADS, LENGTH, LENGTH, dtype=DTYPE)
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(diagonal=1)
    return [scores, future.expand(BATCH, 1, LENGTH, LENGTH).contiguous()]


def get_init_inputs():
    return [1.5]
