"""tests/conftest.py turns skips into failures under CI=true, and only there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
EVASIONS = {
    "skip_call": "import pytest\ndef test_it(): pytest.skip('no editor')",
    "skip_mark": "import pytest\n@pytest.mark.skip(reason='no editor')\ndef test_it(): pass",
    "skip_module": "import pytest\npytest.skip('no editor', allow_module_level=True)",
    "importorskip": "import pytest\npytest.importorskip('no_such_module_here')",
    "xfail": "import pytest\n@pytest.mark.xfail(reason='no editor')\ndef test_it(): assert False",
    "unexpected_pass": "import pytest\n@pytest.mark.xfail(reason='no editor')\ndef test_it(): pass",
}


def run_pytest(folder: Path, sources: dict[str, str], ci: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder)
    for name, source in sources.items():
        (folder / f"test_{name}.py").write_text(source)
    options = ["-q", "-rfE", "--continue-on-collection-errors", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def ci_run(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    ran = {"ran": "def test_it(): pass"}
    return run_pytest(tmp_path_factory.mktemp("ci"), EVASIONS | ran, ci="true")


@pytest.mark.parametrize("evasion", EVASIONS)
def test_a_test_that_did_not_run_fails_in_ci(ci_run: subprocess.CompletedProcess[str], evasion: str) -> None:
    failures = [line for line in ci_run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert any(f"test_{evasion}.py" in line for line in failures), ci_run.stdout


def test_only_what_did_not_run_fails_in_ci(ci_run: subprocess.CompletedProcess[str]) -> None:
    assert ci_run.returncode != 0
    assert "test_ran.py" not in ci_run.stdout
    assert "skipped" not in ci_run.stdout.splitlines()[-1]


def test_elsewhere_a_skip_stays_a_skip(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, EVASIONS, ci="")
    assert result.returncode == 0, result.stdout
