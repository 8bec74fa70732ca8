"""Modules whose forward is a matrix product in every form that PyTorch has for it."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from cutesmith_evaluator.names import snake_case


class Product(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


class BothTransposed(nn.Module):
    def forward(self, a, b):
        return a.T @ b.T


class OfItself(nn.Module):
    def forward(self, a):
        return a @ a.T


class Batched(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


class SharedRight(nn.Module):
    def forward(self, a, b):
        return a @ b


class SharedLeft(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b).relu()


class FourDimensions(nn.Module):
    def forward(self, a, b):
        return torch.einsum("bijl,lk->bijk", a, b)


class Scores(nn.Module):
    def forward(self, q, k):
        return torch.einsum("blhd,bmhd->bhlm", q, k) * 0.125


class TwoDepths(nn.Module):
    def forward(self, a, b):
        return torch.einsum("mij,ijn->mn", a, b)


class Turned(nn.Module):
    def forward(self, a, b):
        return torch.einsum("mk,nk->nm", a, b)


class LinearGELU(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(40, 24)

    def forward(self, x):
        return F.gelu(self.linear(x)) * 2.0


class AddedAndScaled(nn.Module):
    def forward(self, c, a, b):
        return torch.addmm(c, a, b, beta=0.5, alpha=2)


class WithoutBias(nn.Module):
    def forward(self, c, a, b):
        return torch.addmm(c, a, b, beta=0)


class AddedBatches(nn.Module):
    def forward(self, c, a, b):
        return torch.baddbmm(c, a, b)


class TwoResults(nn.Module):
    def forward(self, a, b, r):
        p = a @ b
        return p, torch.sigmoid(p + r)


class MatrixVector(nn.Module):
    def forward(self, a, b):
        return a @ b


class VectorMatrix(nn.Module):
    def forward(self, a, b):
        return a @ b


class Thin(nn.Module):
    def forward(self, a, b):
        return a @ b + 1


SHAPES = {
    "Product": ((10, 40), (40, 24)),
    "BothTransposed": ((40, 10), (24, 40)),
    "OfItself": ((10, 40),),
    "Batched": ((3, 10, 40), (3, 40, 24)),
    "SharedRight": ((3, 10, 40), (40, 24)),
    "SharedLeft": ((10, 40), (3, 40, 24)),
    "FourDimensions": ((2, 3, 5, 40), (40, 24)),
    "Scores": ((2, 10, 3, 16), (2, 12, 3, 16)),
    "TwoDepths": ((10, 5, 8), (5, 8, 24)),
    "Turned": ((10, 40), (24, 40)),
    "LinearGELU": ((3, 10, 40),),
    "AddedAndScaled": ((24,), (10, 40), (40, 24)),
    "WithoutBias": ((24,), (10, 40), (40, 24)),
    "AddedBatches": ((3, 10, 24), (3, 10, 40), (3, 40, 24)),
    "TwoResults": ((10, 40), (40, 24), (10, 24)),
    "MatrixVector": ((10, 40), (40,)),
    "VectorMatrix": ((40,), (40, 24)),
    "Thin": ((10, 40), (40, 1)),
}
DTYPES = {}


def inputs_of(name):
    """Seeded standard normal inputs for a class."""
    generator = torch.Generator().manual_seed(0)
    dtype = DTYPES.get(name, torch.float32)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES[name]]


for _name in SHAPES:
    globals()[f"get_{snake_case(_name)}_inputs"] = partial(inputs_of, _name)
