"""Matrix products: tasks 1-3, 6-11 and 16-18 of KernelBench level 1, linear layers with tails as in level 2."""

import torch
import torch.nn.functional as F
from torch import nn

LEFT, RIGHT = (4096, 4096), (4096, 4096)  # shapes of the inputs; an empty one is left out
IN_FEATURES, OUT_FEATURES = 8192, 8192
DTYPE = torch.float32


class Matmul(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


class TransposedLeft(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a.T, b)


class TransposedRight(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b.T)


class TransposedBoth(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a.T, b.T)


class FourDimensions(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bijl,lk->bijk", a, b)


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(IN_FEATURES, OUT_FEATURES, dtype=DTYPE)


class LinearSubtractMultiplyReLU(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu((self.linear(x) - 2.0) * 1.5)


class LinearSwish(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y * torch.sigmoid(y) * 2.0


class LinearScaleResidual(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y * 0.5 + y


class LinearHardtanhGELU(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(F.hardtanh(self.linear(x) * 0.5, -2.0, 2.0))


class LinearGELU(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x))


class LinearAddReLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(IN_FEATURES, OUT_FEATURES, bias=False)
        self.bias = nn.Parameter(torch.randn(OUT_FEATURES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x) + self.bias)


def get_init_inputs() -> list[object]:
    return []


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(shape, dtype=DTYPE) for shape in (LEFT, RIGHT) if shape]
