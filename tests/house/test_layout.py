"""The house rules that no linter knows: what lies where, how long a file is, what a package pulls in."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("evaluator", "agent", "server")
LONGEST_FILE = 400  # lines


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_path_entry_holds_its_one_package_and_nothing_else(name: str) -> None:
    tops = {path.relative_to(ROOT / name).parts[0] for path in tracked(name)}
    assert tops == {f"cutesmith_{name}"}


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in tracked("*.py", "*.ts")}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def modules_after(statement: str) -> set[str]:
    """Top-level names in sys.modules of a fresh interpreter that ran `statement`."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize(
    ("entry", "banned"),
    [
        ("cutesmith_server.__main__", {"torch", "cutlass", "anthropic", "numpy"}),
        ("cutesmith_agent.__main__", {"torch", "cutlass", "pygls", "lsprotocol"}),
        ("cutesmith_evaluator.client", {"torch", "cutlass", "numpy", "pygls"}),
    ],
)
def test_an_entry_point_loads_nothing_heavy(entry: str, banned: set[str]) -> None:
    assert modules_after(f"import {entry}") & banned == set()


def test_the_wheel_holds_the_three_packages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {f"cutesmith_{p}" for p in PACKAGES}
    assert {str(path.relative_to(ROOT)).partition("/")[2] for path in tracked(*PACKAGES)} <= set(names)
