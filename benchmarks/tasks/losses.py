"""KernelBench level 1, tasks 94-96 and 98-100: losses over a batch."""

import torch
import torch.nn.functional as F
from torch import nn

ROWS, COLUMNS = 32768, 32768
CLASSES = 4096
DIVERGENCE = 16384
EMBEDDING = 8192
DTYPE = torch.float32


class MSELoss(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean((predictions - targets) ** 2)


class CrossEntropyLoss(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(predictions, targets)


class HuberLoss(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.smooth_l1_loss(predictions, targets)


class KLDivLoss(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.kl_div(torch.log(predictions), targets, reduction="batchmean")


class TripletMarginLoss(nn.Module):
    def __init__(self, margin: float = 1.0):
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        return self.loss(anchor, positive, negative)


class HingeLoss(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs():
    return [torch.rand(ROWS, COLUMNS, dtype=DTYPE) for _ in range(2)]


def get_cross_entropy_loss_inputs():
    return [torch.rand(ROWS, CLASSES, dtype=DTYPE), torch.randint(0, CLASSES, (ROWS,))]


def get_kldiv_loss_inputs():
    return [torch.rand(DIVERGENCE, DIVERGENCE, dtype=DTYPE).softmax(-1) for _ in range(2)]


def get_triplet_margin_loss_inputs():
    return [torch.rand(ROWS, EMBEDDING, dtype=DTYPE) for _ in range(3)]


def get_hinge_loss_inputs():
    signs = torch.randint(0, 2, (COLUMNS,)).to(DTYPE) * 2 - 1
    return [torch.rand(ROWS, COLUMNS, dtype=DTYPE), signs]


def get_init_inputs():
    return []
