"""A mirrored project looks like the real one with one file changed, and leaves the real one alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cutesmith_agent.scratch import Mirror
from cutesmith_evaluator.temporary import remove_abandoned
from cutesmith_evaluator.types import Finding
from loop_rig import Rig
from scripted_evaluator import Script, draft


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path, text in {
        "pkg/__init__.py": "",
        "pkg/sub/__init__.py": "",
        "pkg/sub/model.py": "from . import near\nfrom ..far import FAR\nimport top\nprint(near.NEAR + FAR + top.TOP)\n",
        "pkg/sub/near.py": "NEAR = 1\n",
        "pkg/far.py": "FAR = 10\n",
        "top.py": "TOP = 100\n",
        "data/weights.txt": "7",
        "pkg/sub/__pycache__/model.pyc": "stale",
        ".cutesmith/store.sqlite": "kept out",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_imports_and_data_are_found_from_the_changed_file(project: Path):
    before = contents(project)
    changed = (
        (project / "pkg/sub/model.py").read_text()
        + "from pathlib import Path\nprint((Path(__file__).parents[2] / 'data/weights.txt').read_text())\n"
        + "from . import kernel\nprint(kernel.K)\n"
    )
    with Mirror(project) as mirror:
        mirror.put(project / "pkg/sub/kernel.py", b"K = 5\n")
        place = mirror.put(project / "pkg/sub/model.py", changed.encode())
        run = [sys.executable, "-B", "-c", "import pkg.sub.model"]
        result = subprocess.run(run, cwd=place.parents[2], capture_output=True, text=True, check=True)
        assert result.stdout.split() == ["111", "7", "5"]
        assert not (place.parent / "__pycache__").exists()
        assert not (place.parents[2] / ".cutesmith").exists()
    assert not place.exists()
    assert contents(project) == before


def test_a_file_may_be_put_twice_and_beside_another(project: Path):
    with Mirror(project) as mirror:
        first = mirror.put(project / "top.py", b"1")
        assert mirror.put(project / "top.py", b"2") == first
        second = mirror.put(project / "pkg" / "far.py", b"3")
        assert (first.read_bytes(), second.read_bytes()) == (b"2", b"3")
        assert (second.parent / "sub" / "near.py").read_text() == "NEAR = 1\n"
    assert (project / "top.py").read_text() == "TOP = 100\n"


def test_findings_name_the_users_own_files(project: Path):
    with Mirror(project) as mirror:
        place = mirror.put(project / "top.py", b"")
        finding = mirror.in_users_tree(Finding("x", f"{place}:3 failed.", 3, str(place)))
    assert finding == Finding("x", f"{project / 'top.py'}:3 failed.", 3, str(project / "top.py"))


MIRRORING = """
import sys
from pathlib import Path
from cutesmith_agent.scratch import Mirror
mirror = Mirror(Path(sys.argv[1]))
print(mirror.put(Path(sys.argv[1]) / "top.py", b"1"), flush=True)
sys.stdin.read()
"""


def test_folders_of_killed_processes_are_removed_and_no_others(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    temporary = tmp_path / "temporary"
    (temporary / "cutesmith-scratch-unlocked").mkdir(parents=True)
    (temporary / "somebody-elses").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before, pipe = contents(project), subprocess.PIPE
    run = [sys.executable, "-c", MIRRORING, str(project)]
    with (
        subprocess.Popen(run, stdin=pipe, stdout=pipe) as killed,
        subprocess.Popen(run, stdin=pipe, stdout=pipe) as alive,
    ):
        assert killed.stdout is not None
        assert alive.stdout is not None
        left, kept = (Path(process.stdout.readline().decode().strip()) for process in (killed, alive))
        assert left.is_relative_to(temporary)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with Mirror(project) as mirror:
            own = mirror.put(project / "top.py", b"2")
            remove_abandoned()
            assert (left.exists(), kept.read_bytes(), own.read_bytes()) == (False, b"1", b"2")
        alive.kill()
    assert len(list(temporary.iterdir())) == 3
    remove_abandoned()
    assert {folder.name for folder in temporary.iterdir()} == {"cutesmith-scratch-unlocked", "somebody-elses"}
    assert contents(project) == before


def test_a_job_removes_what_killed_ones_left(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    abandoned = tmp_path / "cutesmith-scratch-1"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rig.run(draft(Script(), t=1))
    assert not list(tmp_path.glob("cutesmith-*"))
