"""What only shows when a candidate runs, and that no honest kernel is rejected then: one worker, emulated device."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Validation
from judged_candidates import ROWS, TASKS, Judged, cheats, honest

CHEATS = {cheat.name: cheat for cheat in cheats()}
HONEST = {candidate.name: candidate for candidate in honest()}


def validated(worker: Worker, candidate: Judged, *, quick: bool) -> Validation:
    return worker.validate(candidate.task, candidate.path, device="emulated", quick=quick, dynamic_dims=ROWS)


@pytest.mark.parametrize("name", [name for name, cheat in CHEATS.items() if cheat.kinds("dynamic")])
def test_a_cheat_is_seen_when_it_runs(worker: Worker, name: str):
    verdict = validated(worker, CHEATS[name], quick=False)
    assert verdict.ok is False
    found = {finding.kind for finding in verdict.findings if finding.severity == "error"}
    assert found >= CHEATS[name].kinds("dynamic"), verdict.findings
    assert all(finding.message.endswith(".") for finding in verdict.findings)


@pytest.mark.parametrize(
    "cheat", [cheat for cheat in CHEATS.values() if cheat.kinds("compile")], ids=lambda cheat: cheat.name
)
def test_what_shows_when_it_is_compiled(worker: Worker, cheat: Judged):
    compilation = worker.compile(cheat.task, cheat.path, ["sm_90a"])
    assert {finding.kind for finding in compilation.findings} == cheat.kinds("compile")


@pytest.mark.parametrize("name", HONEST)
def test_no_honest_kernel_is_rejected_when_it_runs(worker: Worker, name: str):
    verdict = validated(worker, HONEST[name], quick=name != "plain")
    said = {"degenerate-task"} if name in ("algebra", "zero_by_algebra") else set()  # one value for all inputs
    assert {(finding.kind, finding.severity) for finding in verdict.findings} == {
        (kind, "information") for kind in said
    }
    assert (verdict.ok, verdict.precision) == (True, "kept")


def test_what_a_cheat_replaced_is_put_back(worker: Worker):
    """The next candidate is judged by the judge; compiling one runs its imports too."""
    worker.compile(CHEATS["patched_clock"].task, CHEATS["patched_clock"].path, ["sm_90a"])
    assert "patched" in {each.kind for each in validated(worker, CHEATS["patched_clock"], quick=True).findings}
    assert validated(worker, CHEATS["replaces_the_judge"], quick=True).ok is False
    assert validated(worker, CHEATS["patched_synchronize"], quick=True).ok is False
    assert validated(worker, CHEATS["returns_a_copy"], quick=True).ok is False
    assert validated(worker, HONEST["plain"], quick=True).ok is True


def check(folder: Path, candidate: Judged) -> dict[str, Any]:
    """`cutesmith check` as a user runs it; the report's one candidate, with the exit status."""
    task = Path(candidate.task.file)
    for file in (task, candidate.path):
        shutil.copy(file, folder)
    kernel = shutil.copy(candidate.path, folder / "mine_cute.py")
    command = [
        sys.executable,
        "-m",
        "cutesmith_server",
        "check",
        f"{task.name}::{candidate.task.qualname}",
        kernel.name,
    ]
    options = ["--device", "emulated", "--arch", "sm_90a", "--json"]
    ended = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=250, check=False)
    (found,) = json.loads(ended.stdout)["candidates"]
    return {**found, "exit": ended.returncode}


@pytest.mark.parametrize(
    ("name", "stage", "kind"),
    [("keyed_by_address", "guards", "pointer-key"), ("batch_and_skip", "validate", "no-launch")],
)
def test_check_rejects_a_cheat_where_it_shows(name: str, stage: str, kind: str, tmp_path: Path):
    found = check(tmp_path, CHEATS[name])
    assert (found["exit"], found["ok"], found["stage"]) == (3, False, stage)
    finding = next(each for each in found["findings"] if each["kind"] == kind)
    assert finding["file"] == str(tmp_path / "mine_cute.py")
    assert stage != "guards" or finding["line"]


def test_check_labels_an_honest_kernel_and_takes_it(tmp_path: Path):
    found = check(tmp_path, HONEST["library_for_a_part"])
    assert (found["exit"], found["ok"]) == (0, True)
    assert [(each["kind"], each["severity"]) for each in found["findings"]] == [("library-part", "information")]


def test_the_tasks_are_where_the_candidates_say():
    assert {Path(each.task.file).name for each in (*CHEATS.values(), *HONEST.values())} == {
        file.name for file in TASKS.glob("*.py")
    }


LATE = """
from cutesmith_evaluator.worker.integrity import Integrity
from torch import nn
integrity = Integrity()
from torch._dynamo import mutation_guard
mutation_guard.install_generation_tagging_init()
assert integrity.restore() == [], "PyTorch's own"
nn.Module.__init__ = lambda self: None
assert integrity.restore() == ["Module.__init__"]
"""


def test_what_pytorch_replaces_when_it_first_compiles_is_no_cheat():
    subprocess.run([sys.executable, "-c", LATE], check=True, timeout=120)
