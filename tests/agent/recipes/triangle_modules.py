"""Products of which only a triangle is kept, and a layer in half precision; each with its inputs."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from cutesmith_evaluator.names import snake_case


class HalfLayer(nn.Module):
    """A layer whose parameters follow its input's type."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(40, 24, dtype=DTYPES.get("HalfLayer", torch.float16))

    def forward(self, a):
        return F.gelu(self.linear(a))


class Upper(nn.Module):
    def forward(self, a, b):
        return torch.triu(a @ b, 3)


class Lower(nn.Module):
    def forward(self, a, b):
        return torch.tril(a @ b)


SHAPES = {
    "HalfLayer": ((9, 40),),
    "Upper": ((130, 72), (72, 128)),
    "Lower": ((70, 40), (40, 131)),
}
DTYPES = {"HalfLayer": torch.float16}


def inputs_of(name):
    """Seeded standard normal inputs for a class."""
    generator = torch.Generator().manual_seed(0)
    dtype = DTYPES.get(name, torch.float32)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES[name]]


for _name in SHAPES:
    globals()[f"get_{snake_case(_name)}_inputs"] = partial(inputs_of, _name)
