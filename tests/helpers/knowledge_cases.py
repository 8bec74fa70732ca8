"""The knowledge pack's snippets as candidates: inputs for each, and what it is to compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from knowledge_snippets import code, snippets

WRAPPER = """

import torch

PLAIN = (torch.Tensor,)


def supports(module, *inputs):
    return True


def explain(module, *inputs):
    return None


def warm_up(module, *inputs):
    compiled("--enable-tvm-ffi")


def forward(module, *inputs):
    y = torch.empty({shape}, dtype=inputs[0].dtype, device=inputs[0].device)
    compiled("--enable-tvm-ffi")({arguments})
    return y
"""


@dataclass(frozen=True)
class Case:
    """`shape` of the result and `arguments` of the compiled function, as Python over `inputs` and `y`."""

    inputs: tuple[Tensor, ...]
    expected: Callable[..., Tensor]
    shape: str = "inputs[0].shape"
    arguments: str = "*inputs, y"


def _linear_gelu(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(a.float() @ b.float().T + bias.float(), approximate="tanh").half()


def _product(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() @ b.float().T).half()


def cases() -> dict[str, Case]:
    """By the snippet's name, on the CPU."""
    torch.manual_seed(0)
    half = {size: torch.randn(size, dtype=torch.float16) for size in ((32, 64), (64, 64), (128, 128), (70, 72))}
    rows = "(inputs[0].shape[0], inputs[1].shape[0])"
    return {
        "layouts": Case((torch.randn(6, 200), torch.randn(200)), torch.add),
        "copies": Case(
            (torch.randn(1003).bfloat16(),), lambda x: (x.float() * 2.5).bfloat16(), arguments="inputs[0], y, 2.5"
        ),
        "shared_memory": Case((torch.randn(50, 70),), lambda x: x.T, "inputs[0].shape[::-1]"),
        "reductions": Case((torch.randn(3, 1024),), lambda x: x.softmax(1)),
        "pipelines": Case((torch.randn(3, 2048),), lambda x: x.sum(1), "inputs[0].shape[:1]"),
        "mma_sync": Case((half[64, 64], half[128, 128][:, :64].contiguous()), _product, rows),
        "epilogues": Case((half[32, 64], half[64, 64], half[64, 64][0].clone()), _linear_gelu, rows),
        "tma": Case((half[70, 72],), lambda x: 2 * x),
        "wgmma": Case((half[128, 128], half[128, 128].flip(1)), _product, rows),
    }


def written(name: str, folder: Path) -> Path:
    """The snippet as a file."""
    path = folder / f"{name}_cute.py"
    path.write_text(code(snippets()[name]))
    return path


def wrapped(name: str, case: Case, folder: Path) -> Path:
    """The snippet as a candidate's file: `forward` allocates the result."""
    path = written(name, folder)
    path.write_text(path.read_text() + WRAPPER.format(shape=case.shape, arguments=case.arguments))
    return path


def check(result: object, expected: Tensor) -> None:
    assert isinstance(result, Tensor)
    exact = result.dtype is torch.float32
    torch.testing.assert_close(result, expected, rtol=1e-5 if exact else 1e-2, atol=1e-4 if exact else 1e-2)
