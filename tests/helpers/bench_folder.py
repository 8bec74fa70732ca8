"""A folder of tasks as KernelBench publishes them."""

from __future__ import annotations

from pathlib import Path

MODEL = """\
import torch
from torch import nn

class Helper(nn.Module):
    def forward(self, x):
        return x

class Model(nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [torch.rand(32, 64)]

def get_init_inputs():
    return []
"""


def level(folder: Path, **files: str) -> Path:
    """A level's folder: `_1_Tanh="torch.tanh(x)"` is the file 1_Tanh.py."""
    place = folder / "level1"
    place.mkdir(parents=True)
    for name, expression in files.items():
        (place / f"{name[1:]}.py").write_text(MODEL.format(expression=expression))
    return place
