"""Disks without room, and a device that is not there: a sentence, and nothing of what was judged is lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.store.opening import open_store
from judged_candidates import TASKS, cheats

CHEATS = {each.name: each.path for each in cheats()}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    return Path(shutil.copy(TASKS / "scaled_task.py", tmp_path))


def checked(
    task: Path, cheat: str, *, device: str = "none", full: Path | None = None, start: Callable[[], None] | None = None
) -> tuple[int, dict[str, Any], str]:
    """`full`: a folder on a disk of its own with a page of room. Exit status, report and what was said."""
    command = [sys.executable, "-m", "cutesmith_server", "check", f"{task}::Scaled", str(CHEATS[cheat])]
    command += ["--device", device, "--arch", "sm_90a", "--json"]
    if full is not None:
        full.mkdir(exist_ok=True)
        command = ["bwrap", "--dev-bind", "/", "/", "--size", "4096", "--tmpfs", str(full), *command]
    environment = os.environ | {"CUTESMITH_SANDBOX": "0"} | ({"TMPDIR": str(full)} if full else {})
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env=environment, preexec_fn=start
    )
    assert "Traceback" not in ended.stderr
    return ended.returncode, json.loads(ended.stdout), ended.stderr


def messages(report: dict[str, Any]) -> str:
    return " ".join(finding["message"] for finding in report["findings"])


def verdicts(task: Path) -> list[str]:
    """Of the last job that came to its end, the names of what was judged."""
    with open_store(task.parent).store as store:
        done = store.latest(str(task), "Scaled", kind="check")
        assert done is not None
        return [Path(each.path or "").stem for each in store.candidates(done.id)]


def test_no_room_for_the_workers_files_is_no_fault_of_the_candidate(task: Path, tmp_path: Path):
    status, report, _ = checked(task, "at_exit", full=tmp_path / "small")
    assert (status, report["candidates"]) == (2, [])
    assert f"The disk of {tmp_path / 'small'} is full: free it" in messages(report)
    assert checked(task, "at_exit")[1]["candidates"][0]["stage"] == "guards"


def test_a_store_that_cannot_grow_keeps_what_it_has(task: Path):
    assert checked(task, "at_exit")[0] == 3
    size = (task.parent / ".cutesmith" / "store.sqlite").stat().st_size

    def no_file_grows() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    status, report, _ = checked(task, "background_thread", start=no_file_grows)
    assert status == 2
    assert f"The store of {task.parent} cannot be written" in messages(report)
    assert verdicts(task) == ["at_exit"]
    assert checked(task, "background_thread")[0] == 3
    assert verdicts(task) == ["background_thread"]


def test_a_device_that_is_not_there_is_said_so(task: Path):
    status, report, _ = checked(task, "at_exit", device="cuda")
    assert (status, report["candidates"]) == (2, [])
    assert "sees no CUDA device: use device auto, emulated or none" in messages(report)
