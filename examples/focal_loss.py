"""Sigmoid focal loss over class logits, averaged to a scalar, as one-stage detectors are trained with."""

import torch
import torch.nn.functional as F
from torch import nn

ROWS, CLASSES = 8192, 4096
DTYPE = torch.float32


class FocalLoss(nn.Module):
    def __init__(self, alpha: float = 0.25, gamma: float = 2.0):
        super().__init__()
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        p = torch.sigmoid(logits)
        cross_entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * (1 - p_t) ** self.gamma * cross_entropy).mean()


def get_inputs():
    return [torch.randn(ROWS, CLASSES, dtype=DTYPE), torch.randint(0, 2, (ROWS, CLASSES)).to(DTYPE)]


def get_init_inputs():
    return []
