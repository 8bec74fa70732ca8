"""A whole job without a GPU: the agent and the command line as a user runs them, ending on the emulated device."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "new_gelu.py"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cutesmith_server", *arguments, "--device", "emulated", "--arch", "sm_90a"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)


def report_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return json.loads(done.stdout)


def test_optimize_ends_with_a_kernel_that_is_right_on_the_emulated_device(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    done = run(tmp_path, "optimize", "new_gelu.py", "--json")
    assert done.returncode == 0, done.stderr
    report = report_of(done)
    assert report["device"] == "emulated"
    assert "emulated device" in report["stopped"]
    best = next(one for one in report["candidates"] if one["id"] == report["best"])
    assert (best["ok"], best["precision"], best["device"]) == (True, "kept", "emulated")
    assert best["error"]["ratio"] > 0
    assert (best["timing"], best["speedup"]) == (None, None), "the emulated device never gives a speed"
    assert "Right on the emulated device" in report["kernel"]["source"]
    assert "not timed" in report["kernel"]["source"]


def test_check_tells_a_wrong_kernel_from_a_right_one(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    made = report_of(run(tmp_path, "optimize", "new_gelu.py", "--json"))["kernel"]
    kernel = tmp_path / "mine_cute.py"
    kernel.write_text(made["source"])
    good = run(tmp_path, "check", "new_gelu.py", kernel.name, "--json")
    assert good.returncode == 0, good.stderr
    assert "right on the emulated device" in report_of(good)["stopped"]
    assert "0.044715" in made["source"]
    kernel.write_text(made["source"].replace("0.044715", "0.44715"))
    bad = run(tmp_path, "check", "new_gelu.py", kernel.name)
    assert bad.returncode == 3
    assert bad.stdout.startswith("NewGELU: pointwise, the emulated device (sm_90a)")
    assert "validate failed" in " ".join(bad.stdout.split())
    assert "(kept)" not in bad.stdout
