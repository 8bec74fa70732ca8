"""Every cheat and every honest kernel as `cutesmith check` judges it: one job a task, with all its candidates."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judged_candidates import Judged, cheats, honest

pytestmark = pytest.mark.timeout(1200)

CHEATS, HONEST = {each.name: each for each in cheats()}, {each.name: each for each in honest()}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, dict[str, Any]]:
    """The report's candidates by their files."""
    everyone = [*CHEATS.values(), *HONEST.values()]
    found: dict[Path, dict[str, Any]] = {}
    for task in {each.task.file: each.task for each in everyone}.values():
        mine = [each for each in everyone if each.task == task]
        found |= checked(tmp_path_factory.mktemp("check"), mine)
    return found


def checked(folder: Path, candidates: Sequence[Judged]) -> dict[Path, dict[str, Any]]:
    task = candidates[0].task
    shutil.copy(task.file, folder)
    (folder / "pyproject.toml").touch()
    target = f"{Path(task.file).name}::{task.qualname}"
    paths = [str(each.path) for each in candidates]
    command = [sys.executable, "-m", "cutesmith_server", "check", target, *paths, "--device", "emulated"]
    ended = subprocess.run(
        [*command, "--arch", "sm_90a", "--json"], cwd=folder, capture_output=True, text=True, timeout=1000, check=False
    )
    return {Path(each["path"]): each for each in json.loads(ended.stdout)["candidates"]}


@pytest.mark.parametrize("name", CHEATS)
def test_check_rejects_every_cheat(verdicts: dict[Path, dict[str, Any]], name: str):
    cheat, verdict = CHEATS[name], verdicts[CHEATS[name].path]
    found = {each["kind"] for each in verdict["findings"] if each["severity"] == "error"}
    stage = "guards" if cheat.kinds("static") else "compile" if cheat.kinds("compile") else "validate"
    assert (verdict["ok"], verdict["stage"]) == (False, stage)
    assert found & {kind for _, kind in cheat.caught}, verdict["findings"]


@pytest.mark.parametrize("name", HONEST)
def test_check_rejects_no_honest_kernel(verdicts: dict[Path, dict[str, Any]], name: str):
    verdict = verdicts[HONEST[name].path]
    assert verdict["ok"] is True, verdict["findings"]
    assert verdict["precision"] == "kept"
    assert {each["severity"] for each in verdict["findings"]} <= {"information"}
