"""Rotary position embedding of queries and keys, rotating halves as LLaMA does."""

import torch
from torch import nn

BATCH, HEADS, LENGTH, HEAD_DIM = 2, 32, 4096, 128
DTYPE = torch.float32


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class RotaryEmbedding(nn.Module):
    def forward(self, q, k, cos, sin):
        """q, k: (batch, heads, length, head_dim); cos, sin: (length, head_dim)."""
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        return q, k


def get_inputs():
    position = torch.arange(LENGTH, dtype=torch.float32)
    frequency = 10000.0 ** (-torch.arange(0, HEAD_DIM, 2, dtype=torch.float32) / HEAD_DIM)
    angle = torch.outer(position, frequency).repeat(1, 2)
    shape = (BATCH, HEADS, LENGTH, HEAD_DIM)
    return [
        torch.randn(shape, dtype=DTYPE),
        torch.randn(shape, dtype=DTYPE),
        angle.cos().to(DTYPE),
        angle.sin().to(DTYPE),
    ]


def get_init_inputs():
    return []
