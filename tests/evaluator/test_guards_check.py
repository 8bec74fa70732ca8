"""Every cheat and honest kernels as `cutesmith check` judges them: one job a task, with all its candidates.

A right kernel is confirmed by processes of its own, ten seconds each: a few stand for all but with `make honest`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judged_candidates import Judged, cheats, honest

pytestmark = pytest.mark.timeout(2400)

Judge = Callable[[Judged], dict[str, Any]]
CHEATS = {each.name: each for each in cheats()}
_ALL = {each.name: each for each in honest()}
_FEW = ("plain", "kernelbench", "library_for_a_part", "split_product")
HONEST = _ALL if os.environ.get("CUTESMITH_HONEST") == "all" else {name: _ALL[name] for name in _FEW}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """What a check reports of a candidate; the first of a task has all of that task checked."""
    known: dict[Path, dict[str, Any]] = {}

    def judged(candidate: Judged) -> dict[str, Any]:
        if candidate.path not in known:
            mine = [each for each in (*CHEATS.values(), *HONEST.values()) if each.task == candidate.task]
            known.update(checked(tmp_path_factory.mktemp("check"), mine))
        return known[candidate.path]

    return judged


def checked(folder: Path, candidates: Sequence[Judged]) -> dict[Path, dict[str, Any]]:
    task = candidates[0].task
    shutil.copy(task.file, folder)
    (folder / "pyproject.toml").touch()
    target = f"{Path(task.file).name}::{task.qualname}"
    paths = [str(each.path) for each in candidates]
    command = [sys.executable, "-m", "cutesmith_server", "check", target, *paths, "--device", "emulated"]
    options = ["--arch", "sm_90a", "--json"]
    ended = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=2000, check=False)
    return {Path(each["path"]): each for each in json.loads(ended.stdout)["candidates"]}


@pytest.mark.parametrize("name", CHEATS)
def test_check_rejects_every_cheat(judge: Judge, name: str):
    cheat = CHEATS[name]
    verdict = judge(cheat)
    errors = [each for each in verdict["findings"] if each["severity"] == "error"]
    stage = "guards" if cheat.kinds("static") else "compile" if cheat.kinds("compile") else "validate"
    assert (verdict["ok"], verdict["stage"]) == (False, stage)
    assert {each["kind"] for each in errors} & {kind for _, kind in cheat.caught}, errors
    assert all(each["file"] == str(cheat.path) for each in errors if stage == "guards")


@pytest.mark.parametrize("name", HONEST)
def test_check_rejects_no_honest_kernel(judge: Judge, name: str):
    verdict = judge(HONEST[name])
    assert (verdict["ok"], verdict["precision"]) == (True, "kept"), verdict["findings"]
    assert {each["severity"] for each in verdict["findings"]} <= {"information"}
