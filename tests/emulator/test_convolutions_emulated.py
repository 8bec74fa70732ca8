"""Convolutions as matrix products on tensor cores, emulated: no less precise than eager, right on what is special."""

from __future__ import annotations

import copy
import re
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

MODULE = """
import torch
import torch.nn.functional as F
from torch import nn


class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.{convolution}
        self.norm = nn.GroupNorm(2, {channels})
        self.scale = nn.Parameter(torch.randn({channels}{ones}))

    def forward(self, x):
        return {tail}


def get_inputs():
    return [torch.randn({shape})]
"""


@dataclass(frozen=True)
class Case:
    """A convolution, what follows it, and constants that the draft's schedule must have."""

    convolution: str
    channels: int  # of results
    shape: tuple[int, ...]
    tail: str
    schedule: dict[str, int]

    def source(self) -> str:
        ones = ", 1" * (len(self.shape) - 2)
        return MODULE.format(
            convolution=self.convolution, channels=self.channels, shape=self.shape, tail=self.tail, ones=ones
        )


PLANE = Case(
    "Conv2d(10, 10, 3, padding=1)",
    10,
    (2, 10, 9, 11),
    "F.hardswish(self.conv(x)) * self.scale + x",
    {"tile_x": 16, "parts": 2},
)
VOLUME = Case(
    "Conv3d(130, 72, (2, 1, 2), dilation=(1, 1, 2), bias=False)",
    72,
    (1, 130, 3, 2, 5),
    "F.gelu(self.conv(x) + 1)",
    {"is_kept": 0, "parts": 2},
)
SCATTERED = Case(
    "ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1)",
    8,
    (1, 16, 5, 9),
    "F.mish(self.conv(x)) * self.scale",
    {"parts": 2},
)
LINE = Case("ConvTranspose1d(5, 8, 3, padding=1)", 8, (2, 5, 13), "F.relu(self.norm(self.conv(x)))", {"tile_x_1": 32})
DIRECT = Case(  # no element of the kernel meets every third result
    "ConvTranspose1d(3, 8, 2, stride=3, dilation=2)",
    8,
    (2, 3, 4),
    "torch.tanh(self.conv(x)) * self.scale",
    {"tile_n": 8},
)
SUMS = Case("ConvTranspose1d(9, 8, 3, stride=2)", 8, (2, 9, 13), "F.gelu(self.conv(x)).mean(2)", {"sums_1": 1})
SOFTMAX = Case(
    "ConvTranspose1d(9, 12, 3, stride=2)", 12, (2, 9, 13), "torch.softmax(self.conv(x), 1) * self.scale", {"staged": 16}
)
LEAST = Case(
    "Conv1d(5, 16, 3, padding=1)", 16, (2, 5, 13), "self.conv(x).amin(1, keepdim=True) * x[:, :1]", {"tile_n": 16}
)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    dsl.load()
    with Worker(Path(sys.executable)) as made:
        yield made


def made(worker: Worker, case: Case, folder: Path) -> tuple[nn.Module, Callable[..., Any]]:
    """The module, and its kernel on an emulated device."""
    file = folder / "task.py"
    file.write_text(case.source())
    found = propose(worker.inspect(Task(str(file), "Task")), Target("Task", file, "sm_90a"))
    source = re.sub(r"\bBLOCKS(_1)? = \d+", r"BLOCKS\1 = 3", _with(found.drafts, case.schedule).source)
    (folder / "task_cute.py").write_text(source)
    space: dict[str, type[nn.Module]] = {}
    exec(file.read_text(), space)
    torch.manual_seed(0)
    module = space["Task"]()
    emulated = EmulatedCandidate(load_candidate(folder / "task_cute.py"), "sm_90a")
    return module, lambda *inputs: emulated.forward(module, *inputs)


def _with(drafts: tuple[Draft, ...], schedule: dict[str, int]) -> Draft:
    return next(draft for draft in drafts if schedule.items() <= draft.schedule.items())


@pytest.fixture(scope="module")
def plane(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Callable[..., Any]]:
    return made(worker, PLANE, tmp_path_factory.mktemp("plane"))


def assert_as_precise(module: nn.Module, kernel: Callable[..., Any], x: torch.Tensor) -> None:
    with torch.no_grad():
        got, eager, exact = kernel(x), module(x), copy.deepcopy(module).double()(x.double())
    for norm in (torch.linalg.vector_norm, lambda y: y.abs().max()):
        assert norm(got - exact) <= 2 * norm(eager - exact) + 4 * 2**-24 * norm(exact)


@pytest.mark.parametrize("case", [VOLUME, SCATTERED, LINE], ids=lambda case: case.convolution)
def test_no_less_precise_than_eager(worker: Worker, case: Case, tmp_path: Path) -> None:
    assert_as_precise(*made(worker, case, tmp_path), torch.rand(case.shape))


@pytest.mark.parametrize("case", [DIRECT, SUMS, SOFTMAX, LEAST], ids=lambda case: case.tail)
def test_each_ending_is_precise_and_passes_on_what_is_special(worker: Worker, case: Case, tmp_path: Path) -> None:
    module, kernel = made(worker, case, tmp_path)
    assert_as_precise(module, kernel, torch.rand(case.shape))
    x = torch.rand(case.shape)
    x[0, 1, 2], x[1, 2, 3] = float("nan"), float("inf")
    with torch.no_grad():
        got, exact = kernel(x), copy.deepcopy(module).double()(x.double()).float()
    assert torch.allclose(got, exact, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_a_plane_is_no_less_precise(plane: tuple[nn.Module, Callable[..., Any]]) -> None:
    assert_as_precise(*plane, torch.rand(PLANE.shape))


def test_what_is_special_is_as_in_fp32(plane: tuple[nn.Module, Callable[..., Any]]) -> None:
    """Inf and NaN in a tile and in a channel's weights, tiny weights, an image of a wide range."""
    module, kernel = plane
    with torch.no_grad():
        weight = module.get_parameter("conv.weight")
        weight[3, 1, 1, 1], weight[4] = float("inf"), weight[4] * 2.0**-90
        x = torch.randn(PLANE.shape)
        x[0, 0, 1, 2], x[0, 1, 7, 9] = float("nan"), float("-inf")
        x[1] = x[1] * torch.exp2(torch.randint(-20, 20, x.shape[1:]).float())
        got, exact = kernel(x), copy.deepcopy(module).double()(x.double()).float()
        assert torch.equal(got.isfinite(), exact.isfinite())
        size = exact[1][exact[1].isfinite()].abs().max()
        finite = exact.isfinite()
        assert ((got - exact)[finite].abs() <= 1e-6 * exact[finite].abs() + 1e-7 * size).all()


def test_fp32_arithmetic_alone_is_left_to_pytorch(worker: Worker, tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(PLANE.source())
    found = propose(worker.inspect(Task(str(file), "Task")), Target("Task", file, "sm_90a", ieee=True))
    assert found.drafts
    assert all("LIBRARY_CALLS" in draft.source for draft in found.drafts)


def test_only_results_one_by_one_are_added_up_by_tiles(worker: Worker, tmp_path: Path) -> None:
    """Not those of a reduction over channels, which another kernel adds up."""
    file = tmp_path / "task.py"
    file.write_text(Case("Conv1d(5, 8, 3)", 8, (2, 5, 13), "torch.softmax(self.conv(x), 1).sum(2)", {}).source())
    found = propose(worker.inspect(Task(str(file), "Task")), Target("Task", file, "sm_90a"))
    assert any("staged_1" in draft.schedule for draft in found.drafts)
    assert not any("sums_1" in draft.schedule for draft in found.drafts)
