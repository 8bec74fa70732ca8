"""What does not fit is made smaller before it is drawn, or refused: processes under real limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from emulated_kernels import RIGHT

GUARD = "x.is_cuda and x.dtype is torch.float32 and not x.requires_grad"
TASK = """
import torch
from torch import nn


class Double(nn.Module):
    def forward(self, x):
        return x + x


def get_inputs():
    return [torch.randn(SIZE)]
"""
CHILD = """
import json, re, resource, sys
from dataclasses import asdict
from pathlib import Path
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.validate import validate
dsl.load()
params, spare = json.loads(sys.argv[1]), int(sys.argv[2])
used = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + spare, used + spare))
verdict = validate(params, lambda _: None)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
print(json.dumps({"ok": verdict.ok, "findings": [asdict(each) for each in verdict.findings], "peak": peak}))
"""


def judged(folder: Path, size: str, spare: int, groups: list[Any]) -> dict[str, Any]:
    """The verdict of a process that may take `spare` bytes more than its libraries do."""
    (folder / "task.py").write_text(TASK.replace("SIZE", size))
    (folder / "double_cute.py").write_text(RIGHT[0].source.replace("x.is_cuda", GUARD))
    task = {"file": str(folder / "task.py"), "qualname": "Double"}
    params = {"task": task, "candidate": str(folder / "double_cute.py"), "device": "emulated", "quick": True}
    params["dynamic_dims"] = groups
    command = [sys.executable, "-c", CHILD, json.dumps(params), str(spare)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_task_that_does_not_fit_is_refused_with_what_it_would_take(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "1 << 26", 1 << 30, [])
    assert verdict["ok"] is None
    (finding,) = verdict["findings"]
    assert (finding["kind"], finding["severity"]) == ("too-big-to-emulate", "information")
    assert "take 0.2 GiB at the smallest sizes" in finding["message"]


def test_a_task_of_many_gigabytes_is_drawn_at_the_size_that_runs(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "1 << 33", 1 << 40, [[[0, 0]]])
    assert verdict["ok"] is True, verdict["findings"]
    assert verdict["peak"] < 2 << 30
    (part,) = [each for each in verdict["findings"] if each["kind"] == "emulated-in-part"]
    assert "65536 instead of 8589934592" in part["message"]
