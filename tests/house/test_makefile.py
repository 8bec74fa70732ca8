"""The Makefile explains itself and says what it needs before it does anything."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

MAKEFILE = Path(__file__).parents[2] / "Makefile"


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(MAKEFILE, folder)
    for needed in ("pyproject.toml", "constraints.txt"):
        (folder / needed).touch()
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


def test_help_is_the_default_and_names_every_target(tmp_path: Path) -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE.read_text(), re.MULTILINE)
    assert phony is not None
    result = make(tmp_path)
    assert result.returncode == 0
    assert [target for target in phony[1].split() if not re.search(rf"\b{target}\b", result.stdout)] == []


def test_an_old_python_is_refused_in_a_sentence(tmp_path: Path) -> None:
    result = make(tmp_path, "demo", "PYTHON=false")
    assert result.returncode != 0
    assert "CuteSmith needs Python 3.11 or newer" in result.stderr
    assert "make PYTHON=python3.12 demo" in result.stderr
    assert not (tmp_path / ".venv").exists()
