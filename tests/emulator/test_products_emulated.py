"""Matrix products on tensor cores, emulated: no less precise than eager; those of fp32 right on what is special."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from cutesmith_agent.recipes import Draft, Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.emulated_inputs import reduced, without_memory
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.reference import load_reference

MODULE = """
import torch
import torch.nn.functional as F
from torch import nn


class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(72, 40, dtype=torch.{dtype})
        self.norm = nn.GroupNorm(4, 40, dtype=torch.{dtype})

    def forward(self, a, b):
        return {expression}


def get_inputs():
    return [torch.randn({left}).to(torch.{dtype}), torch.randn({right}).to(torch.{dtype})]
"""


@dataclass(frozen=True)
class Case:
    """A forward of two tensors, their shapes, and constants that the draft's schedule must have."""

    expression: str
    left: tuple[int, ...]
    right: tuple[int, ...]
    schedule: dict[str, int]
    arch: str = "sm_90a"
    dtype: str = "float32"

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        dtype = getattr(torch, self.dtype)
        return torch.rand(self.left).to(dtype), torch.rand(self.right).to(dtype)


LAYER = Case("F.gelu(self.linear(a) + b)", (3, 10, 72), (40,), {"tile_n": 64, "splits": 1})
CLUSTER = Case("torch.relu(a.T @ b)", (67, 200), (67, 11), {"cluster_m": 2, "tile_n": 64})
MMA_SYNC = Case("torch.einsum('bik,bjk->bji', a, b)", (2, 20, 40), (2, 70, 40), {"tile_m": 64, "tile_n": 64}, "sm_80")
HALF_LAYER = Case("F.gelu(self.linear(a) + b)", (2, 9, 72), (40,), {"tile_m": 64, "tile_n": 128}, dtype="bfloat16")
HALF_TURNED = Case("a.T @ b", (72, 136), (72, 16), {"tile_n": 128, "cluster_m": 2}, dtype="float16")
HALF_ODD = Case("torch.einsum('bik,bjk->bji', a, b)", (2, 20, 701), (2, 21, 701), {"splits": 2}, "sm_80", "float16")
HALF_NESTED = Case("torch.einsum('blhd,bmhd->bhlm', a, b)", (2, 10, 3, 16), (2, 12, 3, 16), {}, dtype="bfloat16")
TRIANGLE = Case("torch.triu(a @ b, 3)", (130, 72), (72, 128), {"tile_n": 128, "tile_k": 64, "cluster_m": 1})
LOWER = Case("torch.tril(a @ b)", (70, 40), (40, 131), {"tile_m": 64, "tile_n": 64}, "sm_80")
CHAIN = Case("torch.logsumexp(F.gelu(self.norm(self.linear(a))) + b, dim=1)", (9, 72), (40,), {})
WIDE = Case("a.T @ b", (67, 13), (67, 11), {"tile_k": 32, "tile_m": 192})
SHARED_DEPTH = Case("a @ b.T + 1", (20, 1100), (24, 1100), {"splits": 4, "parts": 2})
ONE_BLOCK = Case("a @ b.T + 1", (20, 100), (24, 100), {"splits": 1, "parts": 2})
DIRECT = Case("a @ b.T + 1", (20, 100), (24, 100), {"splits": 1, "is_direct": 1})
DIRECT_TURNED = Case("a.T @ b * 0.5", (72, 40), (72, 44), {"is_direct": 1})


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    dsl.load()
    with Worker(Path(sys.executable)) as made:
        yield made


def made(
    worker: Worker, case: Case, folder: Path, planted: tuple[str, str] = ("", "")
) -> tuple[nn.Module, Callable[..., Any]]:
    """The module, and its kernel on an emulated device. `planted`: a text of the kernel, and another in its place."""
    file = folder / "task.py"
    file.write_text(MODULE.format(expression=case.expression, left=case.left, right=case.right, dtype=case.dtype))
    found = propose(worker.inspect(Task(str(file), "Task")), Target("Task", file, case.arch))
    source = _with(found.drafts, case.schedule).source
    assert planted[0] in source
    (folder / "task_cute.py").write_text(source.replace(*planted, 1))
    space: dict[str, type[nn.Module]] = {}
    exec(file.read_text(), space)
    module = space["Task"]()
    emulated = EmulatedCandidate(load_candidate(folder / "task_cute.py"), case.arch)
    return module, lambda *inputs: emulated.forward(module, *inputs)


def _with(drafts: tuple[Draft, ...], schedule: dict[str, int]) -> Draft:
    return next(draft for draft in drafts if schedule.items() <= draft.schedule.items())


CASES = [LAYER, CLUSTER, MMA_SYNC, HALF_LAYER, HALF_ODD, HALF_NESTED, TRIANGLE, LOWER, CHAIN, DIRECT_TURNED]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dtype} {case.expression}")
def test_no_less_precise_than_eager(worker: Worker, case: Case, tmp_path: Path) -> None:
    with torch.no_grad():
        module, kernel = made(worker, case, tmp_path)
        a, b = case.inputs()
        assert_as_precise(kernel(a, b), module(a, b), module.double()(a.double(), b.double()))


def assert_as_precise(got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    rounding = torch.finfo(got.dtype).eps / 2
    for norm in (torch.linalg.vector_norm, lambda x: x.abs().max()):
        allowed = (2 if rounding < 2**-20 else 1.1) * norm(eager - exact) + 4 * 2**-24 * norm(exact)
        assert norm(got - exact) <= allowed


def test_factors_in_half_precision_are_read_where_they_lie_or_copied(worker: Worker, tmp_path: Path) -> None:
    """Both with their lines side by side; then from addresses that the copies into shared memory cannot take."""
    module, kernel = made(worker, HALF_TURNED, tmp_path)
    a, b = HALF_TURNED.inputs()
    exact = module(a.double(), b.double())
    assert_as_precise(kernel(a, b), module(a, b), exact)
    odd = torch.empty(1 + a.numel(), dtype=a.dtype)[1:].view(a.shape).copy_(a)
    assert odd.data_ptr() % 16
    assert_as_precise(kernel(odd, b), module(a, b), exact)


@pytest.mark.parametrize("case", [SHARED_DEPTH, ONE_BLOCK, DIRECT], ids=lambda case: str(case.schedule))
def test_what_is_special_is_as_in_fp32(worker: Worker, case: Case, tmp_path: Path) -> None:
    """Inf, NaN, rows of zeros, subnormal rows, rows near fp32's limit, and rows over the whole range."""
    _, kernel = made(worker, case, tmp_path)
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(shape, generator=generator) for shape in (case.left, case.right))
    a[0], b[1], b[5, 5] = 0, 0, 0
    a[2, 5], a[3, 6], a[4, 7], b[6, 5] = float("inf"), float("-inf"), float("nan"), float("inf")
    a[8], b[9] = a[8] * 1e-40, b[9] * 2.0**100
    a[10], b[10] = a[10] * 1e35, b[10] * 1e-30
    a[11] = a[11] * torch.exp2(torch.arange(a.shape[1]) % 60 - 30.0)
    got, exact, size = kernel(a, b), a.double() @ b.double().T + 1, a.double().abs() @ b.double().abs().T + 1
    fits = exact.isfinite() & (exact.abs() < 3e38)
    assert torch.equal(got.isnan(), exact.isnan())
    assert torch.equal(got.isinf() & exact.isinf(), exact.isinf())
    assert torch.equal(got.sign()[exact.isinf()], exact.sign()[exact.isinf()].float())
    assert ((got - exact).abs()[fits] <= 2**-21 * size[fits]).all()


def test_more_registers_than_a_block_has_are_found(worker: Worker, tmp_path: Path) -> None:
    """Three warpgroups at 160 and one at 40 ask for 66,560, as a draft of ours once did."""
    _, kernel = made(worker, WIDE, tmp_path, ("PRODUCER_REGISTERS = 32", "PRODUCER_REGISTERS = 40"))
    with pytest.raises(TaskError, match=r"waits for registers: .* 66,560, .* 65,536") as caught:
        kernel(torch.rand(WIDE.left), torch.rand(WIDE.right))
    assert caught.value.finding.kind == "deadlock"


def test_a_large_product_keeps_several_tiles_of_rows_and_runs_in_part(worker: Worker, tmp_path: Path) -> None:
    """At the depth and the width that the kernel is made for: some rows more cost little beside a whole factor."""
    case = Case("torch.relu(a @ b)", (4096, 592), (592, 2560), {"tile_m": 128, "tile_n": 128, "cluster_m": 2})
    module, _ = made(worker, case, tmp_path)
    reference = load_reference(Task(str(tmp_path / "task.py"), "Task"))
    whole = without_memory(reference)
    assert whole is not None
    smaller, _, words = reduced(reference, whole, [((0, 0),)], lambda inputs: True)
    assert words == ("dimension 0 of input 0: 144 instead of 4096",)
    inputs = [tensor for tensor in smaller.inputs(0, "cpu") if isinstance(tensor, torch.Tensor)]
    candidate = EmulatedCandidate(load_candidate(tmp_path / "task_cute.py"), case.arch)
    with torch.no_grad():
        got, exact = candidate.forward(module, *inputs), module.double()(*(tensor.double() for tensor in inputs))
    assert list(candidate.device.parts.values()) == [(6, 40)]
    assert isinstance(got, torch.Tensor)
    judged = candidate.judged(got)
    assert judged is not None
    assert judged.sum() == 3 * 128 * 144, "three pairs of tiles, one below the other"
    assert torch.linalg.vector_norm((got - exact)[judged]) <= 2**-21 * torch.linalg.vector_norm(exact[judged])
