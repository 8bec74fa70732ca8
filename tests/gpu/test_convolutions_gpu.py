"""Convolutions as matrix products at realistic sizes: judged, and timed beside eager and torch.compile."""

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
        self.conv = nn.{convolution}
        self.norm = nn.GroupNorm(8, {channels})

    def forward(self, x):
        return {tail}


def get_inputs():
    return [torch.rand({shape})]
"""

CASES = {
    "few channels": ("Conv2d(8, 64, 3)", 64, (32, 8, 128, 128), "F.hardswish(F.relu(self.conv(x)))"),
    "many channels": ("Conv2d(64, 128, 3)", 128, (16, 64, 128, 128), "torch.relu(self.conv(x)) * 2"),
    "volume": ("Conv3d(8, 32, 3)", 32, (8, 8, 32, 64, 64), "F.gelu(self.conv(x))"),
    "three channels": ("Conv3d(3, 16, 3)", 16, (16, 3, 16, 64, 64), "torch.tanh(self.conv(x) * 2)"),
    "transposed": ("ConvTranspose2d(64, 64, 3, 2, 1, 1)", 64, (16, 64, 64, 64), "F.mish(self.conv(x))"),
    "transposed volume": ("ConvTranspose3d(32, 64, 3, 2, 1, 1)", 64, (8, 32, 16, 32, 32), "F.hardswish(self.conv(x))"),
    "before a norm": ("Conv2d(8, 64, 3, padding=1)", 64, (32, 8, 127, 129), "self.norm(F.gelu(self.conv(x)))"),
    "over channels": (
        "ConvTranspose2d(64, 128, 4, 2, 1, 1)",
        128,
        (16, 64, 64, 64),
        "torch.softmax(self.conv(x), 1) * 2",
    ),
    "least channel": ("Conv2d(16, 64, 3)", 64, (16, 16, 128, 128), "torch.tanh(self.conv(x).amin(1, keepdim=True))"),
    "over space": ("Conv2d(8, 64, 3)", 64, (32, 8, 128, 128), "F.gelu(self.conv(x)).mean((2, 3))"),
    "odd": ("Conv2d(33, 40, (5, 2), padding=(2, 1), dilation=(1, 3))", 40, (7, 33, 61, 101), "F.relu(self.conv(x))"),
}
SCHEDULES = 2  # of each that are judged


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_keeps_its_precision(worker: Worker, name: str, tmp_path: Path) -> None:
    convolution, channels, shape, tail = CASES[name]
    file = tmp_path / f"convolution_{list(CASES).index(name)}.py"
    file.write_text(MODULE.format(convolution=convolution, channels=channels, shape=shape, tail=tail))
    task = Task(str(file), "Task")
    own = [draft for draft in drafts_of(worker, task) if {"tile_x", "tile_x_1"} & draft.schedule.keys()]
    assert own
    for number, draft in enumerate(own[:SCHEDULES]):
        candidate = tmp_path / f"draft{number}" / "task_cute.py"
        candidate.parent.mkdir()
        candidate.write_text(draft.source)
        verdict = worker.validate(task, candidate, quick=True)
        allowed = {"kept", "as eager"} if any("tf32" in each for each in draft.schedule) else {"kept"}
        assert verdict.ok, (draft.schedule, verdict.findings)
        assert verdict.precision in allowed, (draft.schedule, verdict.findings)
        timing = worker.time(task, candidate, quick=True)
        arms = ", ".join(f"{arm.name} {arm.median_ms:.4f}" for arm in timing.arms)
        print(f"{name} {draft.schedule}: {arms}; {timing.fraction_of_copy:.2f} of a copy", flush=True)
