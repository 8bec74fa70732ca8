"""Attention: task 97 of KernelBench level 1 at its own shape, and as models write it, with and without PyTorch's op."""

import math

import torch
import torch.nn.functional as F
from torch import nn

QUERIES, KEYS = (32, 32, 512, 1024), (32, 32, 512, 1024)  # shapes
DTYPE = torch.float32
DRAWN = torch.rand


class ScaledDotProductAttention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class CausalAttention(nn.Module):
    """Heads of keys may be fewer than those of queries."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class WrittenAttention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return torch.softmax(scores, dim=-1) @ v


class WrittenCausalAttention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        length = q.shape[-2]
        kept = torch.ones(length, length, dtype=torch.bool, device=q.device).tril()
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return torch.softmax(scores.masked_fill(~kept, float("-inf")), dim=-1) @ v


def get_init_inputs() -> list[object]:
    return []


def get_inputs() -> list[torch.Tensor]:
    return [DRAWN(shape).to(DTYPE) for shape in (QUERIES, KEYS, KEYS)]
