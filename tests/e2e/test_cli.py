"""The command line at work: optimize, check, accept, reject, remove, status, doctor, each a real process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from accepted_module import added_lines, check_accepted
from command_line import CUTESMITH, Ended, cutesmith
from cutesmith_evaluator.processes import descendants

KEYS_OF_CANDIDATE = {
    "id", "origin", "stage", "ok", "precision", "error", "findings", "resources", "compile_s", "timing", "speedup",
}  # fmt: skip
WITHOUT_GPU = ("--device", "none", "--arch", "sm_90a")


def test_optimize_prints_one_json_object(project):
    ended = cutesmith("optimize", "new_gelu.py", "--device", "none", "--json", cwd=project)
    assert ended.status == 4, ended.stderr
    report = ended.json
    assert report["task"]["class"] == "NewGELU"
    assert report["task"]["file"] == str(project / "new_gelu.py")
    assert report["task"]["category"] == "pointwise"
    assert "aten.tanh.default" in report["task"]["ops"]
    assert report["device"] == "none"
    (best,) = [each for each in report["candidates"] if each["id"] == report["best"]]
    assert set(best) >= KEYS_OF_CANDIDATE
    assert best["ok"] is None
    assert {each["arch"] for each in best["resources"]} == {"sm_90a", "sm_80", "sm_100a"}
    assert best["compile_s"] > 0
    assert report["stopped"].endswith(".")
    assert ended.stderr == ""


def test_optimize_shows_stages_figures_and_the_patch(project):
    ended = cutesmith("optimize", project / "new_gelu.py", *WITHOUT_GPU)
    assert ended.status == 4
    assert "compiling for sm_90a" in ended.stderr
    for expected in ("NewGELU: pointwise", "compiled, not validated", "registers", "Estimate (roofline, not measured)"):
        assert expected in ended.stdout
    assert "+        if new_gelu_cute.supports(self, x):" in ended.stdout
    assert f"To take it: cutesmith accept {project / 'new_gelu.py'}::NewGELU" in ended.stdout
    assert (project / "new_gelu.py").read_text().count("new_gelu_cute") == 0


def test_check_gives_a_kernel_of_ours_its_verdict(offered):
    kernel = offered / "mine_cute.py"
    shutil.copy(next((offered / ".cutesmith").rglob("new_gelu_cute.py")), kernel)
    ended = cutesmith("check", f"{offered}/new_gelu.py::NewGELU", kernel, *WITHOUT_GPU, "--json")
    assert ended.status == 4, ended.stderr
    (candidate,) = ended.json["candidates"]
    assert (candidate["origin"], candidate["ok"]) == ("user", None)
    assert set(candidate) >= KEYS_OF_CANDIDATE
    accepted = cutesmith("accept", offered / "new_gelu.py", "--yes")  # a check takes no offer away
    assert accepted.status == 0, accepted.stderr
    assert "new_gelu_cute.supports(self, x)" in (offered / "new_gelu.py").read_text()


def test_check_names_the_line_of_a_kernel_that_does_not_compile(offered):
    source = next((offered / ".cutesmith").rglob("new_gelu_cute.py")).read_text()
    kernel = offered / "broken_cute.py"
    before, _, _ = source.partition("cute.math.exp(")
    assert before != source
    kernel.write_text(source.replace("cute.math.exp(", "cute.math.no_such_function("))
    ended = cutesmith("check", offered / "new_gelu.py", kernel, *WITHOUT_GPU, "--json")
    assert ended.status == 3
    (candidate,) = ended.json["candidates"]
    assert candidate["ok"] is False
    finding = candidate["findings"][0]
    assert (finding["line"], finding["file"]) == (before.count("\n") + 1, str(kernel))


def test_accept_writes_what_the_editor_would_and_remove_takes_it_out(offered):
    path, original = offered / "new_gelu.py", (offered / "new_gelu.py").read_text()
    path.chmod(0o640)
    accepted = cutesmith("accept", f"{path}::NewGELU", "--yes", "--json")
    assert accepted.status == 0, accepted.stderr
    assert accepted.json["kernel"] == str(offered / "new_gelu_cute.py")
    assert accepted.json["patch"].startswith("--- a/new_gelu.py\n+++ b/new_gelu.py\n")
    assert len(added_lines(original, path.read_text())) == 4
    assert path.stat().st_mode & 0o777 == 0o640
    check_accepted(offered, original, path)
    (status,) = cutesmith("status", path, "--json").json["classes"]
    assert (status["state"], status["note"]) == ("accepted", "")
    assert "requires grad" in cutesmith("status", path).stdout

    again = cutesmith("accept", path, "--yes")
    assert (again.status, "has its kernel already (new_gelu_cute.py)" in again.stderr) == (3, True)

    removed = cutesmith("remove", path)
    assert removed.status == 0, removed.stderr
    assert "new_gelu_cute.py deleted" in removed.stdout
    assert path.read_text() == original
    assert not (offered / "new_gelu_cute.py").exists()
    assert cutesmith("remove", path).status == 3
    (offered_again,) = cutesmith("status", path, "--json").json["classes"]
    assert offered_again["state"] == "compiled"
    assert cutesmith("accept", path, "--yes", "--json").json["kernel"] == accepted.json["kernel"]


def test_through_a_link_a_command_is_about_the_file_itself(offered):
    path, link = offered / "new_gelu.py", offered / "package" / "link.py"
    link.parent.mkdir()
    (link.parent / "__init__.py").touch()
    link.symlink_to(Path("..") / path.name)
    original = path.read_bytes()
    assert cutesmith("accept", link, "--yes").status == 0
    assert b"\nimport new_gelu_cute\n" in path.read_bytes()
    assert not link.with_name("new_gelu_cute.py").exists()
    assert [each["file"] for each in cutesmith("status", "--json", cwd=offered).json["classes"]] == [str(path)]
    removals = cutesmith("uninstall", "--json", cwd=offered).json["removals"]
    assert [(each["file"], each["kernel_file"]) for each in removals] == [(str(path), "deleted")]
    removed = cutesmith("remove", path)
    assert "new_gelu_cute.py deleted" in removed.stdout
    assert path.read_bytes() == original


def test_a_kernel_that_stays_is_said_to_be_in_use_and_by_whom(offered):
    assert cutesmith("accept", offered / "new_gelu.py", "--yes").status == 0
    (offered / "other.py").write_text("import new_gelu_cute\n")
    assert "new_gelu_cute.py left as it is: other.py uses it" in cutesmith("remove", offered / "new_gelu.py").stdout


def test_status_of_a_project_lists_kernels_on_offer_and_those_decided_on(offered):
    (ready,) = cutesmith("status", "--json", cwd=offered).json["classes"]
    assert (ready["class"], ready["state"]) == ("NewGELU", "compiled")
    assert "new_gelu.py::NewGELU  compiled" in cutesmith("status", cwd=offered).stdout
    assert cutesmith("reject", offered / "new_gelu.py").status == 0
    (rejected,) = cutesmith("status", "--json", cwd=offered).json["classes"]
    assert (rejected["state"], rejected["note"]) == ("idle", "last decision: rejected")


def test_status_of_a_project_goes_on_past_a_file_that_cannot_be_read(offered):
    broken = offered / "a.py"
    broken.write_text((offered / "new_gelu.py").read_text())
    assert cutesmith("optimize", broken, *WITHOUT_GPU, "--json").status == 4
    broken.write_bytes(b"# coding: no-such-code\n")
    ended = cutesmith("status", "--json", cwd=offered)
    assert [each["file"] for each in ended.json["classes"]] == [str(offered / "new_gelu.py")]
    assert "a.py cannot be read" in ended.stderr


def test_status_of_a_project_without_a_job(project):
    assert "No kernel was made in this project" in cutesmith("status", cwd=project).stdout


def test_accept_asks_before_it_takes_a_kernel_that_never_ran(offered):
    path, original = offered / "new_gelu.py", (offered / "new_gelu.py").read_text()
    refused = cutesmith("accept", path)
    assert refused.status == 3
    assert "--yes" in refused.stderr
    assert path.read_text() == original
    assert not (offered / "new_gelu_cute.py").exists()


@pytest.mark.parametrize(("answer", "status", "written"), [(b"y\n", 0, True), (b"\n", 3, False)])
def test_at_a_terminal_the_question_is_put(offered, answer, status, written):
    terminal, stdin = os.openpty()
    process = subprocess.Popen(
        [*CUTESMITH, "accept", str(offered / "new_gelu.py")],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.write(terminal, answer)
    _, stderr = process.communicate(timeout=60)
    os.close(terminal)
    os.close(stdin)
    assert process.returncode == status, stderr
    assert b"compiled, not validated. Accept it all the same? [y/N]" in stderr
    assert (offered / "new_gelu_cute.py").exists() == written


def test_accept_takes_another_candidate_by_its_id(offered):
    drafts = [path.parent.name for path in (offered / ".cutesmith" / "candidates").rglob("new_gelu_cute.py")]
    for id in sorted(drafts):
        accepted = cutesmith("accept", offered / "new_gelu.py", "--candidate", id, "--yes")
        assert accepted.status == 0, accepted.stderr
        stored = next((offered / ".cutesmith").rglob(f"{id}/new_gelu_cute.py")).read_text()
        assert (offered / "new_gelu_cute.py").read_text() == stored
        return
    raise AssertionError("the job left no candidate")


def test_accept_refuses_an_unknown_candidate_and_lists_the_usable_ones(offered):
    refused = cutesmith("accept", offered / "new_gelu.py", "--candidate", "0123", "--yes")
    assert refused.status == 3
    assert "usable:" in refused.stderr


def test_accept_keeps_line_ends_tabs_bom_and_encoding(offered):
    path = offered / "new_gelu.py"
    text = path.read_text().replace("    ", "\t").replace('"""GELU', '# coding: latin-1\n"""GÉLU').replace("\n", "\r\n")
    path.write_bytes(text.encode("latin-1"))
    assert cutesmith("accept", path, "--yes").status == 0
    accepted = path.read_bytes()
    assert b"G\xc9LU" in accepted
    assert accepted.count(b"\n") == accepted.count(b"\r\n")
    assert b"\t\tif new_gelu_cute.supports(self, x):\r\n" in accepted
    assert cutesmith("remove", path).status == 0
    assert path.read_bytes() == text.encode("latin-1")


def test_accept_refuses_a_class_that_changed_since(offered):
    path = offered / "new_gelu.py"
    path.write_text(path.read_text().replace("0.5 * x", "0.6 * x"))
    changed = path.read_text()
    (status,) = cutesmith("status", path, "--json").json["classes"]
    assert status["state"] == "stale"
    refused = cutesmith("accept", path, "--yes")
    assert refused.status == 3
    assert "generate it again" in refused.stderr
    assert path.read_text() == changed


def test_accept_never_overwrites_a_file_that_is_not_ours(offered):
    kernel = offered / "new_gelu_cute.py"
    kernel.write_text("precious = True\n")
    refused = cutesmith("accept", offered / "new_gelu.py", "--yes")
    assert refused.status == 3
    assert "new_gelu_cute.py exists" in refused.stderr
    assert kernel.read_text() == "precious = True\n"
    assert "new_gelu_cute" not in (offered / "new_gelu.py").read_text()


def test_reject_is_remembered(offered):
    path = offered / "new_gelu.py"
    assert cutesmith("status", path, "--json").json["classes"][0]["state"] == "compiled"
    assert cutesmith("reject", path).status == 0
    assert cutesmith("status", path, "--json").json["classes"][0] == {
        "file": str(path),
        "class": "NewGELU",
        "state": "idle",
        "note": "last decision: rejected",
        "candidate": None,
    }
    assert cutesmith("accept", path, "--yes").status == 3
    assert cutesmith("reject", path).status == 3
    (only,) = cutesmith("status", "--json", cwd=offered).json["classes"]
    assert only["class"] == "NewGELU"


def test_what_was_never_on_offer_is_not_rejected(tmp_path):
    path = tmp_path / "conv.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Conv(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.conv = nn.Conv1d(2, 2, 3)\n\n    def forward(self, x):\n        return self.conv(x)\n\n\n"
        "def get_inputs():\n    return [torch.randn(1, 2, 8)]\n"
    )
    assert cutesmith("optimize", path, *WITHOUT_GPU).status == 3
    refused = cutesmith("reject", path)
    assert (refused.status, "the last run made none" in refused.stderr) == (3, True)
    (only,) = cutesmith("status", path, "--json").json["classes"]
    assert only["state"] == "failed"


@pytest.mark.parametrize("command", ["status", "optimize model.py", "doctor", "export --trajectories"])
def test_a_folder_that_is_gone_is_said_to_be(tmp_path, command):
    gone = tmp_path / "gone"
    gone.mkdir()
    run = f"cd {gone} && rmdir {gone} && {CUTESMITH[0]} -m cutesmith_server {command}"
    ended = subprocess.run(["sh", "-c", run], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.strip() == "The folder that you are in was deleted: change to one that is there."


def test_a_file_that_does_not_parse_is_said_to(tmp_path):
    path = tmp_path / "syntax.py"
    path.write_text("from torch import nn\n\n\nclass A(nn.Module):\n    def forward(self, x)\n        return x\n")
    ended = cutesmith("optimize", path)
    assert ended.status == 2
    assert "syntax.py:5 does not parse: expected ':'" in ended.stderr


def test_a_read_only_folder_loses_nothing(offered):
    path, original = offered / "new_gelu.py", (offered / "new_gelu.py").read_text()
    offered.chmod(0o555)
    try:
        refused = cutesmith("accept", path, "--yes", bound_by_permissions=True)
    finally:
        offered.chmod(0o755)
    assert refused.status == 3
    assert "read-only" in refused.stderr
    assert path.read_text() == original
    assert cutesmith("accept", path, "--yes").status == 0


def test_a_kernel_is_made_for_a_read_only_project(project):
    path = project / "new_gelu.py"
    project.chmod(0o555)
    try:
        ended = cutesmith("optimize", path, *WITHOUT_GPU, "--json", bound_by_permissions=True)
    finally:
        project.chmod(0o755)
    assert ended.status == 4, ended.stderr
    assert any("cannot be written" in finding["message"] for finding in ended.json["findings"])
    assert sorted(each.name for each in project.iterdir()) == ["new_gelu.py", "pyproject.toml"]


def test_ctrl_c_ends_the_jobs_processes(project, monkeypatch):
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # the module says by a file that it runs
    path = project / "slow.py"
    path.write_text(
        "from pathlib import Path\nimport time\nfrom torch import nn\nPath(__file__).with_name('running').touch()\n"
        "time.sleep(600)\nclass A(nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a script starts with "&"
    process = subprocess.Popen([*CUTESMITH, "optimize", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(signal.SIGINT, before)
    _wait(lambda: (project / "running").exists())
    started = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=15)
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert b"Interrupted: what was tried is kept, and the same command goes on from there.\n" in stderr
    assert [pid for pid in started if Path(f"/proc/{pid}").exists()] == []


def test_a_reader_that_goes_away_is_no_failure(offered):
    process = subprocess.Popen([*CUTESMITH, "status", str(offered / "new_gelu.py")], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    _, stderr = process.communicate(timeout=60)
    assert b"Traceback" not in stderr
    assert b"Exception ignored" not in stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "COMMAND"),
        (["optimise"], "invalid choice"),
        (["optimize"], "FILE[::Class]"),
        (["optimize", "nowhere.py"], "does not exist"),
        (["optimize", "."], "is a folder"),
        (["optimize", "pyproject.toml"], "no nn.Module class"),
        (["optimize", "new_gelu.py", "--device", "tpu"], "invalid choice"),
        (["optimize", "new_gelu.py", "--interpreter", "/nowhere/python"], "/nowhere/python"),
        (["optimize", "new_gelu.py::Missing"], "Missing"),
        (["optimize", "new_gelu.py", "--max-minutes", "inf"], "'inf' is no time: give a number above 0"),
        (["check", "new_gelu.py", "nowhere_cute.py"], "nowhere_cute.py is no file"),
        (["status", "nowhere.py"], "does not exist"),
    ],
)
def test_usage_errors_and_unusable_input_end_with_2_and_a_sentence(project, words, said):
    ended = cutesmith(*words, cwd=project)
    assert ended.status == 2
    assert said in _all_said(ended)


@pytest.mark.parametrize("command", ["accept", "reject", "remove"])
def test_there_is_nothing_to_decide_before_a_job(project, command):
    ended = cutesmith(command, "new_gelu.py", "--json", cwd=project)
    assert ended.status == 3
    assert ended.json["error"].strip() == ended.stderr.strip()
    assert not (project / ".cutesmith").exists()


def _all_said(ended: Ended) -> str:
    return ended.stdout + ended.stderr


def _wait(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
