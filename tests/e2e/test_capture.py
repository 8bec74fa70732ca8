"""`cutesmith capture` on programs as people run them: recorded, and not to be noticed by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from captured_run import PROGRAM
from command_line import CUTESMITH, cutesmith

WIDE = """\
import torch
from torch import nn


class Wide(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.tanh(x) * self.scale
"""
USES = """\
import torch
from wide import Wide


def test_wide():
    module = Wide(48).eval()
    for rows in (8, 8, 8, 3):
        module(torch.randn(rows, 48))
    assert module(torch.randn(48, 8).t()).shape == (8, 48)
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict, str]:
    """The hostile program by itself, and what capturing it gave: (itself, report, its output then)."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "pyproject.toml").write_text("")
    (folder / "train.py").write_text(PROGRAM)
    (folder / "sitecustomize.py").write_text("open('own.txt', 'a').write('x')\n")
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "train.py"]
    run = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "check": False}
    alone = subprocess.run(command, **run)
    starts = len((folder / "own.txt").read_text())
    with_it = subprocess.run([*CUTESMITH, "capture", "--time", "--json", "--", *command], **run)
    assert len((folder / "own.txt").read_text()) == 2 * starts + 1  # our own command's is the one more
    report = json.loads(with_it.stdout)
    return alone, report, with_it.stderr


def test_a_captured_program_does_what_it_does_by_itself(captured):
    alone, report, output = captured
    assert alone.returncode == report["status"] == 7, alone.stderr + output
    assert sorted(line for line in output.splitlines() if line in alone.stdout) == sorted(alone.stdout.splitlines())
    assert "Traceback" not in output


def signatures(report: dict, name: str) -> dict[str, dict]:
    (found,) = [each for each in report["classes"] if each["class"] == name]
    return {each["words"]: each for each in found["signatures"]}


def test_every_process_and_every_kind_of_call_is_in_the_record(captured):
    _, report, _ = captured
    assert {each["class"] for each in report["classes"]} == {"Act", "Block", "Net", "Failing"}
    net, block, act = (signatures(report, name) for name in ("Net", "Block", "Act"))
    assert (net["(4, 16) float32"]["calls"], net["(4, 16) float32"]["training"]) == (10, 10)
    assert block["(4, 16) float32"]["calls"] == 30
    hooked = next(words for words in net if "extra=" in words)
    assert hooked.startswith("(4, 16) float32 strides (1, 4), extra={rest: a builtins.object, rows: [4, (2,) float32]}")
    assert (net[hooked]["calls"], net[hooked]["grad"], net[hooked]["usable"]) == (5, 0, False)
    assert net["(7, 16) float32"]["calls"] == 1  # torch.compile's
    assert [net[f"(3, {width}) float32"]["calls"] for width in (8, 10, 12)] == [1, 1, 1]  # fork, spawn, killed
    assert act["(2, 2) float32"]["calls"] == 4  # threads
    assert "(5, 5) float32" not in act  # scripted: no Python is run
    assert json.loads(block["(4, 16) float32"]["text"])["init"] == {"args": [{"value": 16}], "kwargs": {}}  # of copies


def test_nothing_of_a_tensor_but_its_form_is_kept(captured):
    _, report, _ = captured
    for found in report["classes"]:
        for each in found["signatures"]:
            data = json.loads(each["text"])
            assert set(data) == {"init", "args", "kwargs", "dtype"}
            tensors = [spec["tensor"] for spec in data["args"] if "tensor" in spec]
            assert all(set(tensor) == {"dtype", "shape", "strides"} for tensor in tensors)


def test_shares_are_of_the_outermost_modules(captured):
    _, report, _ = captured
    share = {each["class"]: each["time"]["share"] for each in report["classes"]}
    assert 0 < share["Act"] < share["Block"] < share["Net"] <= 1


def test_captured_inputs_are_what_a_kernel_is_made_for(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "wide.py").write_text(WIDE)
    (tmp_path / "test_wide.py").write_text(USES)
    refused = cutesmith("optimize", "wide.py", "--device", "none", cwd=tmp_path)
    assert (refused.status, "cutesmith capture -- python" in refused.stdout) == (2, True)
    pytest_words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_wide.py")
    ran = cutesmith("capture", "--", *pytest_words, cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "wide.py::Wide  captured: 3 signatures in 5 calls" in ran.stdout
    made = cutesmith("optimize", "wide.py", "--device", "none", "--arch", "sm_90a", "--json", cwd=tmp_path)
    assert made.status == 4, made.stdout
    found = {each["kind"]: each["message"] for each in made.json["findings"]}
    assert found["captured-inputs"] == "Inputs as captured: (8, 48) float32, in 3 of 5 calls (3 signatures)."


def test_nothing_to_run_and_nothing_recorded_are_said(tmp_path):
    assert cutesmith("capture", cwd=tmp_path).stderr.startswith("Nothing to run")
    assert "no-such-program cannot be started" in cutesmith("capture", "--", "no-such-program", cwd=tmp_path).stderr
    nothing = cutesmith("capture", "--", "-c", "print(1)", cwd=tmp_path)
    assert (nothing.status, nothing.stdout) == (3, "1\n")
    assert "No module of a project was called" in nothing.stderr
    assert not Path(tmp_path / ".cutesmith").exists()
