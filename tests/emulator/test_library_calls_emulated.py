"""Kernels for what follows a convolution, which stays PyTorch's: declared in the file and said in the verdict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.guards.static import judge
from cutesmith_evaluator.types import Task

MODULES = """\
import torch
import torch.nn.functional as F
from torch import nn


class PointwiseTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 12, 3, padding=(1, 0))
        self.bias = nn.Parameter(torch.randn(12, 1, 1))

    def forward(self, x):
        return F.hardswish(self.conv(x)) + self.bias


class NormTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1, output_padding=1, bias=False)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x):
        return self.norm(F.gelu(self.conv(x)))


class NoTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 4, 7, 9)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


@pytest.mark.parametrize(("name", "draft"), [("PointwiseTail", -1), ("NormTail", 0)])
def test_a_tail_is_right_and_says_what_is_not_its_own(name: str, draft: int, worker: Worker, tmp_path: Path) -> None:
    task = _task(tmp_path, name)
    source = propose(worker.inspect(task), Target(name, Path(task.file), "sm_90a")).drafts[draft].source
    candidate = tmp_path / "kernel" / f"{name.lower()}_cute.py"
    candidate.parent.mkdir()
    candidate.write_text(source)
    verdict = worker.validate(task, candidate, device="emulated", quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), verdict.findings
    findings = judge(source, candidate).findings
    assert {finding.kind for finding in findings} == {"library-part"}, findings
    assert any("torch.conv" in finding.message for finding in findings)


def test_a_convolution_alone_is_refused(worker: Worker, tmp_path: Path) -> None:
    task = _task(tmp_path, "NoTail")
    proposal = propose(worker.inspect(task), Target("NoTail", Path(task.file), "sm_90a"))
    assert not proposal.drafts
    assert "aten.convolution" in proposal.findings[0].message


def _task(folder: Path, name: str) -> Task:
    file = folder / "tails.py"
    file.write_text(MODULES)
    return Task(str(file), name)
