"""Huber loss per sample, with a weight per target: the critic's loss of many reinforcement learners."""

import torch
from torch import nn

ROWS, FEATURES = 8192, 4096
DTYPE = torch.float32


class WeightedHuberLoss(nn.Module):
    def __init__(self, delta: float = 1.0):
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """prediction, target: (samples, targets); weight: (targets,). Returns a loss per sample."""
        error = (prediction - target).abs()
        quadratic = error.clamp(max=self.delta)
        loss = 0.5 * quadratic**2 + self.delta * (error - quadratic)
        return (weight * loss).mean(dim=-1)


def get_inputs():
    shape = (ROWS, FEATURES)
    return [torch.randn(shape, dtype=DTYPE), torch.randn(shape, dtype=DTYPE), torch.rand(FEATURES, dtype=DTYPE)]


def get_init_inputs():
    return []
