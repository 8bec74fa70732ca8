"""A kernel's life on a CUDA device: captured, made for what was captured, accepted, proved, tuned again, taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import cutesmith

pytestmark = pytest.mark.gpu

MODULE = """\
import torch
from torch import nn


class Act(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(x))


class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.up, self.act = nn.Linear(width, 4 * width), Act()

    def forward(self, x):
        return self.act(self.up(x))
"""
RUN = """\
import torch
from model import Net

net = Net(1024).cuda().eval()
with torch.no_grad():
    for rows in (4096, 4096, 4096, 512):
        net(torch.randn(rows, 1024, device="cuda"))
    graph = torch.cuda.CUDAGraph()
    x = torch.randn(64, 1024, device="cuda")
    net(x)
    with torch.cuda.graph(graph):
        net(x)
    graph.replay()
torch.cuda.synchronize()
"""


def test_a_kernel_from_the_captured_run_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "model.py").write_text(MODULE)
    (tmp_path / "run.py").write_text(RUN)
    captured = cutesmith("capture", "--time", "--json", "--", "run.py", cwd=tmp_path)
    assert captured.status == 0, captured.stderr
    classes = {each["class"]: each for each in captured.json["classes"]}
    assert classes["Act"]["signatures"][0]["words"] == "(4096, 4096) float32"
    assert 0 < classes["Act"]["time"]["share"] < classes["Net"]["time"]["share"] <= 1

    made = cutesmith("optimize", "model.py::Act", "--json", "--proposer", "recipes", cwd=tmp_path)
    assert made.status == 0, made.stdout
    best = next(each for each in made.json["candidates"] if each["id"] == made.json["best"])
    kinds = {finding["kind"] for finding in (*made.json["findings"], *best["findings"])}
    assert {"captured-inputs", "captured-right"} <= kinds

    assert cutesmith("accept", "model.py::Act", "--yes", "--json", cwd=tmp_path).status == 0
    gate = cutesmith("check", "--all", "--json", cwd=tmp_path)
    assert (gate.status, [each["why"] for each in gate.json["kernels"]]) == (0, [""])
    tuned = cutesmith("retune", "model.py::Act", "--json", cwd=tmp_path)
    assert tuned.status == 0, tuned.stdout
    assert 0.7 < tuned.json["gain"] < 1.4
    print(tuned.json["said"], classes["Act"]["time"])
    assert cutesmith("uninstall", "--yes", "--json", cwd=tmp_path).status == 0
    assert (tmp_path / "model.py").read_text() == MODULE
