"""After accept: every kernel proved again where something changed, tuned again, taken out of the project again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from accepted_module import check_accepted
from command_line import cutesmith
from cutesmith_evaluator.types import Environment
from cutesmith_server.surroundings import Surroundings, drifted, surroundings

CHECK = ("check", "--all", "--device", "none", "--arch", "sm_90a", "--json")
H200 = Environment("3.12", "2.11.0", "4.8.1", "0.1", "NVIDIA H200", "sm_90a", "580.1")


@pytest.fixture
def accepted(offered: Path) -> Path:
    assert cutesmith("accept", offered / "new_gelu.py", "--yes").status == 0
    return offered


def test_what_has_not_changed_is_not_proved_again(accepted):
    ended = cutesmith(*CHECK, cwd=accepted)
    (kernel,) = ended.json["kernels"]
    assert (ended.status, kernel["exit"], kernel["why"]) == (4, 4, "")
    assert "nothing has changed since" in kernel["said"]
    assert ended.stderr == ""


def rewrite_environment(project: Path, **versions: str) -> None:
    with sqlite3.connect(project / ".cutesmith" / "store.sqlite") as store:
        for row, text in store.execute("SELECT rowid, environment FROM candidates").fetchall():
            changed = json.dumps(json.loads(text) | versions, sort_keys=True)
            store.execute("UPDATE candidates SET environment = ? WHERE rowid = ?", (changed, row))


def test_another_torch_is_told_and_proved_with_and_then_it_holds(accepted):
    rewrite_environment(accepted, torch="2.0.0")
    (status,) = cutesmith("status", "--json", cwd=accepted).json["classes"]
    assert (status["state"], "(was 2.0.0)" in status["note"]) == ("accepted", True)
    first = cutesmith(*CHECK, cwd=accepted)
    (kernel,) = first.json["kernels"]
    assert (first.status, kernel["why"].startswith("torch "), "(was 2.0.0)" in kernel["why"]) == (4, True, True)
    (kernel,) = cutesmith(*CHECK, cwd=accepted).json["kernels"]
    assert kernel["why"] == ""


def test_a_kernel_that_is_wrong_now_fails_the_gate(accepted):
    kernel = accepted / "new_gelu_cute.py"
    kernel.write_text(kernel.read_text().replace("cute.math.exp(", "cute.math.no_such_function("))
    ended = cutesmith("check", "--all", "--device", "none", "--arch", "sm_90a", cwd=accepted)
    assert ended.status == 3
    assert "new_gelu.py::NewGELU  FAILED: new_gelu_cute.py failed at compile" in ended.stdout
    assert "no verdict on this file is known here; proving it" in ended.stderr


def test_without_the_store_or_the_kernel_the_gate_still_finds_the_class(accepted):
    (accepted / "new_gelu_cute.py").unlink()
    shutil.rmtree(accepted / ".cutesmith")
    ended = cutesmith(*CHECK, cwd=accepted)
    (kernel,) = ended.json["kernels"]
    assert (ended.status, kernel["class"]) == (3, "NewGELU")
    assert kernel["said"].startswith("new_gelu_cute.py is missing, so new_gelu.py cannot be imported")


def test_nothing_accepted_is_nothing_to_check_and_nothing_to_take_out(offered):
    assert cutesmith(*CHECK, cwd=offered).json == {"kernels": [], "exit": 0}
    assert "nothing to take out" in cutesmith("uninstall", cwd=offered).stdout


@pytest.mark.parametrize("words", [(), ("new_gelu.py",), ("--all", "new_gelu.py"), ("--all", "a.py", "b.py")])
def test_check_says_what_it_takes(offered, words):
    ended = cutesmith("check", *words, cwd=offered)
    assert (ended.status, "FILE::Class CANDIDATE.py" in ended.stderr) == (2, True)


def test_uninstall_shows_first_and_then_leaves_the_files_as_they_were(offered):
    path = offered / "new_gelu.py"
    original = path.read_text()
    assert cutesmith("accept", path, "--yes").status == 0
    adopted = path.read_text()
    shown = cutesmith("uninstall", cwd=offered)
    assert (shown.status, path.read_text()) == (0, adopted)
    check_accepted(offered, original, path)
    assert "-        if new_gelu_cute.supports(self, x):" in shown.stdout
    assert "new_gelu_cute.py deleted" in shown.stdout
    assert "uninstall --yes does it" in shown.stdout
    path.write_text(adopted.replace('"""', '"""Mine: ', 1))
    done = cutesmith("uninstall", "--yes", "--json", cwd=offered)
    assert (done.status, done.json["done"]) == (0, True)
    assert path.read_text() == original.replace('"""', '"""Mine: ', 1)
    assert not (offered / "new_gelu_cute.py").exists()


def test_uninstall_keeps_a_kernel_that_was_edited(accepted):
    kernel = accepted / "new_gelu_cute.py"
    kernel.write_text(kernel.read_text() + "# mine\n")
    (removal,) = cutesmith("uninstall", "--yes", "--json", cwd=accepted).json["removals"]
    assert (removal["kernel_file"], kernel.read_text().endswith("# mine\n")) == ("kept", True)
    assert "new_gelu_cute" not in (accepted / "new_gelu.py").read_text()


def test_uninstall_tells_what_it_could_not_take_out(accepted):
    before = (accepted / "new_gelu.py").read_text()
    accepted.chmod(0o555)
    try:
        ended = cutesmith("uninstall", "--yes", cwd=accepted, bound_by_permissions=True)
    finally:
        accepted.chmod(0o755)
    assert (ended.status, (accepted / "new_gelu.py").read_text()) == (3, before)
    assert "new_gelu.py::NewGELU  not taken out: " in ended.stdout
    assert "cannot be written" in ended.stdout


def test_tuning_again_needs_a_kernel_and_a_device(offered):
    assert "has no kernel to tune again" in cutesmith("retune", offered / "new_gelu.py").stderr
    assert cutesmith("accept", offered / "new_gelu.py", "--yes").status == 0
    ended = cutesmith("retune", offered / "new_gelu.py", "--device", "emulated")
    assert (ended.status, "measuring on a CUDA device" in ended.stderr) == (3, True)


def test_an_interpreters_versions_are_read_without_running_it(tmp_path):
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    more = tmp_path / "more"
    for name in ("torch-2.11.0+cu130.dist-info", "torchvision-0.20.dist-info"):
        (folder / name).mkdir(parents=True)
    (more / "nvidia_cutlass_dsl-4.8.1.dist-info").mkdir(parents=True)
    (folder / "more.pth").write_text(f"{more}\nimport sys; sys.exit(1)\n")
    found = surroundings(tmp_path / "env" / "bin" / "python")
    assert (found.torch, found.dsl) == ("2.11.0+cu130", "4.8.1")
    nothing = surroundings(tmp_path / "nowhere" / "bin" / "python")
    assert (nothing.torch, nothing.dsl) == (None, None)


def test_drift_is_claimed_only_of_what_is_known():
    here = Surroundings("2.11.0", "4.8.1", "580.1", ("NVIDIA H200", "NVIDIA H200"))
    assert drifted(H200, here) == ""
    assert drifted(H200, Surroundings()) == ""
    assert drifted(replace(H200, torch="2.11.0+cu130"), here) == "", "torch names its build, its package does not"
    other = Surroundings("2.13.0", "4.9.0", "590.2", ("NVIDIA B200",))
    assert drifted(H200, other) == (
        "torch 2.13.0 (was 2.11.0), the CuTe DSL 4.9.0 (was 4.8.1), the driver 590.2 (was 580.1), "
        "the GPU NVIDIA B200 (was NVIDIA H200)"
    )
