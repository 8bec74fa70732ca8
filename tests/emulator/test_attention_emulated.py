"""Attention on tensor cores, emulated: no less precise than eager, and as forward where values are special."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Inspection, Task
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate

MODULE = """
import torch
import torch.nn.functional as F
from torch import nn


class Task(nn.Module):
    def forward(self, q, k, v{more}):
        return {expression}


def get_inputs():
    return [{inputs}]
"""
SHARED_HEADS = "F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)"
MASKED = "F.scaled_dot_product_attention(q, k, v, attn_mask=m)"
WRITTEN = "torch.softmax((q @ k.mT * 0.3).masked_fill(m, float('-inf')), -1) @ v"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    dsl.load()
    with Worker(Path(sys.executable)) as made:
        yield made


@dataclass(frozen=True)
class On:
    """A device, and what a draft's schedule must have."""

    arch: str
    schedule: dict[str, int]


_INSPECTED: dict[tuple[str, str], Inspection] = {}  # by expression and shapes
AMPERE, HOPPER = (
    On("sm_80", {"tile_queries": 64, "stages": 2}),
    On("sm_90a", {"tile_queries": 64, "consumer_registers": 240}),
)
ONE_WARP = On("sm_80", {"warps": 1})
OVERLAPPED = On("sm_90a", {"tile_queries": 128, "tile_keys": 64, "consumer_registers": 232})
WIDE = On("sm_90a", {"cluster": 1})


def made(
    worker: Worker, expression: str, inputs: list[torch.Tensor], folder: Path, on: On
) -> tuple[nn.Module, Callable[..., Any]]:
    """The module and its kernel on an emulated device."""
    file = folder / "task.py"
    shapes = ", ".join(f"torch.zeros({tuple(x.shape)}, dtype={x.dtype})" for x in inputs)
    file.write_text(MODULE.format(expression=expression, more=", m" if len(inputs) > 3 else "", inputs=shapes))
    if (expression, shapes) not in _INSPECTED:
        _INSPECTED[expression, shapes] = worker.inspect(Task(str(file), "Task"))
    found = propose(_INSPECTED[expression, shapes], Target("Task", file, on.arch))
    chosen = next(draft for draft in found.drafts if on.schedule.items() <= draft.schedule.items())
    (folder / "task_cute.py").write_text(chosen.source)
    space: dict[str, type[nn.Module]] = {}
    exec(file.read_text(), space)
    module = space["Task"]()
    emulated = EmulatedCandidate(load_candidate(folder / "task_cute.py"), on.arch)
    return module, lambda *tensors: emulated.forward(module, *tensors)


def assert_as_precise(got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    rounding = torch.finfo(got.dtype).eps / 2
    for norm in (torch.linalg.vector_norm, lambda x: x.abs().max()):
        assert norm(got - exact) <= 2 * norm(eager - exact) + 4 * rounding * norm(exact)


def test_causal_attention_with_shared_heads(worker: Worker, tmp_path: Path) -> None:
    """Two tiles of keys, heads of 20, tensors that start anywhere."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, heads, 70, 20).bfloat16() for heads in (2, 1, 1))
    module, kernel = made(worker, SHARED_HEADS, [q, k, v], tmp_path, AMPERE)
    odd = torch.empty(1 + k.numel(), dtype=k.dtype)[1:].view(k.shape).copy_(k)
    assert odd.data_ptr() % 16
    assert_as_precise(kernel(q, odd, v), module(q, k, v), module(q.double(), k.double(), v.double()))


def test_rows_without_a_key_give_zeros(worker: Worker, tmp_path: Path) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, length, 48).half() for length in (20, 70, 70))
    m = torch.rand(20, 70) > 0.5
    m[3] = False
    module, kernel = made(worker, MASKED, [q, k, v, m], tmp_path, OVERLAPPED)
    got = kernel(q, k, v, m)
    assert (got[:, 3] == 0).all()
    assert_as_precise(got, module(q, k, v, m), module(q.double(), k.double(), v.double(), m))


@pytest.mark.parametrize(("on", "depth", "width"), [(ONE_WARP, 16, 32), (HOPPER, 32, 32), (WIDE, 8, 260)], ids=str)
def test_fp32_keeps_its_accuracy_and_what_is_special(
    worker: Worker, on: On, depth: int, width: int, tmp_path: Path
) -> None:
    """Inf and NaN in a key, a query and a value; a row without a key; then numbers alone, some near fp32's limits."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, *shape) for shape in ((18, depth), (40, depth), (40, width)))
    m = torch.rand(18, 40) > 0.7
    module, kernel = made(worker, WRITTEN, [q, k, v, m], tmp_path, on)
    k[0, 3], v[1, :, 5], v[1, :, 6] = k[0, 3] * 1e-30, v[1, :, 5] * 1e35, 0
    exact = module(q.double(), k.double(), v.double(), m)
    assert_as_precise(kernel(q, k, v, m), module(q, k, v, m), exact)
    k[0, 1, 2], q[1, 4, 4], v[0, 7, 3], v[0, 8, 4] = torch.inf, torch.nan, torch.nan, -torch.inf
    m[9] = True
    got, wanted = kernel(q, k, v, m), module(q.double(), k.double(), v.double(), m)
    assert torch.equal(got.isnan(), wanted.isnan())
    assert torch.equal(got.isinf(), wanted.isinf())
    numbers = wanted.isfinite()
    assert_as_precise(got[numbers], module(q, k, v, m)[numbers], wanted[numbers])
