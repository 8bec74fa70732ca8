"""Workspaces for end-to-end tests: a project folder, and a state folder of its own for what is remembered."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hanging_job import HANGS
from two_kernels import PAIR

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing a test does is remembered outside it."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the tanh-GELU example."""
    return _new_project(tmp_path / "project")


@pytest.fixture
def slow(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose import never ends, in a project whose temporary files can be counted."""
    scratch = project.parent / "tmp"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # the module says by a file that it runs
    path = project / "slow.py"
    path.write_text(HANGS)
    return path


@pytest.fixture(scope="session")
def _finished_job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project with one finished job, and a copy of it. The store knows files by path, so the path stays."""
    folder = tmp_path_factory.mktemp("offered")
    root = _new_project(folder / "project")
    _optimize(str(root / "new_gelu.py"))
    return root, Path(shutil.copytree(root, folder / "copy"))


@pytest.fixture
def offered(_finished_job: tuple[Path, Path]) -> Path:
    """A project whose store offers a kernel for NewGELU, compiled and not run."""
    root, copy = _finished_job
    shutil.rmtree(root)
    shutil.copytree(copy, root)
    return root


@pytest.fixture(scope="session")
def pair_jobs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project with one finished job on each class of pair.py, and a copy of it."""
    folder = tmp_path_factory.mktemp("pair")
    root = folder / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    (root / "pair.py").write_text(PAIR)
    for name in ("First", "Second"):
        _optimize(f"{root / 'pair.py'}::{name}")
    return root, Path(shutil.copytree(root, folder / "copy"))


@pytest.fixture
def pair(pair_jobs: tuple[Path, Path]) -> Path:
    """A file with two classes, each with a kernel on offer."""
    root, copy = pair_jobs
    shutil.rmtree(root)
    shutil.copytree(copy, root)
    return root / "pair.py"


def _optimize(target: str) -> None:
    command = [sys.executable, "-m", "cutesmith_server", "optimize", target, "--arch", "sm_90a", "--device", "none"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 4, run.stderr


def _new_project(root: Path) -> Path:
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    shutil.copy(EXAMPLES / "new_gelu.py", root)
    return root
