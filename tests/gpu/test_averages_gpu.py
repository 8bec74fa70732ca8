"""Convolutions of which only averages are needed, at realistic sizes: the first draft is right and twice as fast."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from gpu_kernels import drafts_of

pytestmark = pytest.mark.gpu

MODULE = """
import torch
import torch.nn.functional as F
from torch import nn


class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.{convolution}{dtype}

    def forward(self, x):
        return {tail}


def get_inputs():
    return [torch.rand({shape}){dtype}]
"""

CASES = {
    "padded": ("Conv2d(64, 128, 3, padding=1)", "", (32, 64, 127, 130), "self.conv(x).mean((2, 3)) * 2"),
    "strided": ("Conv2d(64, 96, 5, stride=2, padding=2)", ".half()", (32, 64, 128, 128), "self.conv(x).sum((2, 3))"),
    "transposed": ("ConvTranspose2d(64, 128, 3, 2, 1, 1)", "", (16, 64, 128, 128), "self.conv(x).mean((2, 3))"),
    "line": ("Conv1d(32, 64, 9, padding=4)", "", (64, 32, 1 << 14), "torch.tanh(self.conv(x).mean(-1))"),
    "volume": ("ConvTranspose3d(16, 64, 3, padding=1)", "", (8, 16, 32, 64, 64), "F.relu(self.conv(x).mean(2))"),
    "pooled": ("ConvTranspose3d(3, 16, 3, 2, 1)", "", (32, 3, 16, 32, 32), "F.avg_pool3d(self.conv(x), 2) * 2"),
}


@pytest.mark.parametrize("name", CASES)
def test_averages_keep_their_precision(worker: Worker, name: str, tmp_path: Path) -> None:
    convolution, dtype, shape, tail = CASES[name]
    file = tmp_path / f"averages_{list(CASES).index(name)}.py"
    file.write_text(MODULE.format(convolution=convolution, dtype=dtype, shape=shape, tail=tail))
    task = Task(str(file), "Task")
    draft = drafts_of(worker, task)[0]
    assert "exact rearrangement" in draft.title
    candidate = tmp_path / "task_cute.py"
    candidate.write_text(draft.source)
    verdict = worker.validate(task, candidate, quick=True)
    assert (verdict.ok, verdict.precision) == (True, "kept"), (draft.schedule, verdict.findings)
    ms = {arm.name: arm.median_ms for arm in worker.time(task, candidate, quick=True).arms}
    print(f"{name} {draft.schedule}: {ms}", flush=True)
    assert 2 * ms["candidate"] < ms["compile"]
