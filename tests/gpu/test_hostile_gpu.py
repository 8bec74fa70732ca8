"""The fifty hostile candidates on a GPU, in one job: verdicts, processes and the device's memory afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from command_line import cutesmith
from hostile_candidates import QUALNAME, hostile_candidates, write_project

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(1500)]

DEADLINE_S = 15
ON_CUDA = {  # where the device, or the time that a first launch takes, tells less than the emulated one
    "loops_on_the_device": {"timeout"},
    "writes_out_of_bounds": {"device-fault", "worker-error", "worker-died", "timeout"},
    "asks_for_a_petabyte": {"out-of-memory"},
    "overflows_the_stack": {"candidate-raises", "worker-died"},  # by the Python's version
}
FREE = "import torch; print(torch.cuda.mem_get_info()[0])"


def free_bytes() -> int:
    """Of the device, as another process sees it."""
    return int(subprocess.run([sys.executable, "-c", FREE], capture_output=True, text=True, check=True).stdout)


def workers_left(scratch: Path) -> list[str]:
    """Processes that a worker with a folder in `scratch` has started, or was."""
    environments = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environments[folder.name] = (folder / "environ").read_bytes()
    mark = b"\0CUTESMITH_SCRATCH=" + bytes(scratch)
    return [pid for pid, environment in environments.items() if mark in b"\0" + environment]


def test_fifty_hostile_candidates_leave_the_device_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scratch = tmp_path / "scratch"  # other jobs on the machine have workers too
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("CUTESMITH_DEADLINE_S", str(DEADLINE_S))
    monkeypatch.setenv("CUTESMITH_MEMORY_GB", "24")
    task, paths = write_project(tmp_path)
    before = free_bytes()
    command = [sys.executable, "-m", "cutesmith_server", "check", f"{task}::{QUALNAME}", *map(str, paths)]
    ended = subprocess.run([*command, "--device", "cuda", "--json"], capture_output=True, text=True, check=False)
    report = json.loads(ended.stdout)
    assert abs(before - free_bytes()) < 64 << 20
    assert workers_left(scratch) == []
    by_name = {Path(each["path"]).stem.removesuffix("_cute"): each for each in report["candidates"]}
    wrong = []
    for hostile in hostile_candidates():
        errors = [each["kind"] for each in by_name[hostile.name]["findings"] if each["severity"] == "error"]
        kinds = ON_CUDA.get(hostile.name, set(hostile.kinds))
        ok = by_name[hostile.name]["ok"]
        if ok is not True if not kinds else ok is True or not errors or errors[0] not in kinds:
            messages = [each["message"][:200] for each in by_name[hostile.name]["findings"][:2]]
            wrong.append(f"{hostile.name}: {ok} {errors} {messages}, and not {kinds}")
    assert not wrong, "\n".join(wrong)
    last = cutesmith("doctor", "--json")
    assert next(each for each in last.json["checks"] if each["name"] == "CUDA device")["verdict"] == "ok"


def test_a_kernel_that_never_ends_is_killed_and_the_next_one_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scratch = tmp_path / "scratch"  # other jobs on the machine have workers too
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("CUTESMITH_DEADLINE_S", "30")
    task, paths = write_project(tmp_path)
    endless_file = next(path for path in paths if path.stem == "loops_on_the_device_cute")
    chosen = (endless_file, Path(__file__).parents[1] / "evaluator" / "honest" / "plain.py")
    ended = cutesmith("check", f"{task}::{QUALNAME}", *chosen, "--device", "cuda", "--json", cwd=tmp_path)
    endless, right = ended.json["candidates"]
    assert (endless["ok"], endless["findings"][-1]["kind"]) == (False, "timeout")
    assert right["ok"] is True
