"""`cutesmith doctor`: each row with a set-up that is broken there, and the fix it gives."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import CUTESMITH, Ended, cutesmith
from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.types import Environment
from cutesmith_server.cli.checkup_machine import device_checks, driver_check, permission_check, profiling_check

ROWS = [
    "interpreter", "torch", "CuTe DSL", "tvm-ffi", "CUDA device", "driver", "arch", "ncu", "bubblewrap", "key",
    "consent", "store", "disk",
]  # fmt: skip
H200 = Environment("3.12", "2.11.0", "4.8.1", "0.1", "NVIDIA H200", "sm_90a", "580.1")
WITHOUT_GPU = Environment("3.12", "2.11.0", "4.8.1", "0.1", "none", None)


def rows(ended: Ended) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in ended.json["checks"]}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without any package: doctor's start is quick there."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([CUTESMITH[0], "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    return folder / "venv" / "bin" / "python"


def test_every_row_that_is_not_well_has_its_fix(tmp_path, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    ended = cutesmith("doctor", "--json", cwd=tmp_path)
    found = rows(ended)
    assert list(found) == ROWS
    assert all(check["advice"] for check in found.values() if check["verdict"] != "ok")
    assert ended.status == 0  # without a GPU, too: the emulated device proves kernels
    assert (found["key"]["verdict"], "export ANTHROPIC_API_KEY" in found["key"]["advice"]) == ("limited", True)
    assert found["consent"]["found"] == "not asked yet; you are asked before any code goes to api.anthropic.com"


def test_an_interpreter_that_is_none(tmp_path):
    ended = cutesmith("doctor", "--interpreter", tmp_path / "python", "--json")
    check = rows(ended)["interpreter"]
    assert (ended.status, check["verdict"]) == (3, "missing")
    assert "choose the interpreter of your project" in check["advice"]


def test_an_interpreter_without_anything(empty):
    ended = cutesmith("doctor", "--interpreter", empty, "--json")
    found = rows(ended)
    assert ended.status == 3
    for name, package in (("torch", "torch"), ("CuTe DSL", "nvidia-cutlass-dsl"), ("tvm-ffi", "apache-tvm-ffi")):
        assert (found[name]["verdict"], f"{empty} -m pip install {package}" in found[name]["advice"]) == (
            "missing",
            True,
        )


def test_a_full_disk_and_a_read_only_project(empty, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project, full = tmp_path / "project", tmp_path / "full"
    project.mkdir()
    full.mkdir()
    (project / "pyproject.toml").write_text("")
    small = ["bwrap", "--dev-bind", "/", "/", "--size", str(32 << 20), "--tmpfs", str(full)]
    small += ["--ro-bind", str(project), str(project)]
    command = [*small, "--setenv", "TMPDIR", str(full), *CUTESMITH, "doctor", "--interpreter", str(empty), "--json"]
    run = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    found = rows(Ended(run.returncode, run.stdout, run.stderr))
    assert (found["disk"]["verdict"], f"free in {full}" in found["disk"]["found"]) == ("missing", True)
    assert "TMPDIR" in found["disk"]["advice"]
    assert (found["store"]["verdict"], "read-only" in found["store"]["found"]) == ("limited", True)


def test_a_word_that_was_no_and_settings_that_are_none(empty, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    with open_store(tmp_path).store as store:
        store.set_consent("api.anthropic.com", granted=False)
    consent = rows(cutesmith("doctor", "--interpreter", empty, "--json", cwd=tmp_path))["consent"]
    assert (consent["verdict"], consent["advice"].endswith("asks again.")) == ("limited", True)
    (tmp_path / "pyproject.toml").write_text("[tool.cutesmith]\nmax_dollars = -1\n")
    consent = rows(cutesmith("doctor", "--interpreter", empty, "--json", cwd=tmp_path))["consent"]
    assert (consent["verdict"], "max_dollars" in consent["advice"]) == ("limited", True)


def test_the_driver_by_what_keeps_pytorch_from_it(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert driver_check(H200, "580.1").verdict == "ok"
    assert driver_check(WITHOUT_GPU, "").found == "no NVIDIA driver is loaded"
    assert "--gpus all" in driver_check(WITHOUT_GPU, "580.1").advice
    assert "build without CUDA" in driver_check(replace(WITHOUT_GPU, torch="2.11.0+cpu"), "580.1").found
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert driver_check(WITHOUT_GPU, "580.1").advice == "Unset it."


def test_an_arch_that_the_dsl_does_not_know():
    (arch,) = [check for check in device_checks(replace(H200, arch="sm_75")) if check.name == "arch"]
    assert (arch.verdict, "--device emulated" in arch.advice) == ("limited", True)


def test_a_profiler_that_may_not_look(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "ncu").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ncu").chmod(0o755)
    assert "no CUDA device" in profiling_check(WITHOUT_GPU).found
    refused = permission_check("ncu", "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n", is_administrator=False)
    assert (refused.verdict, "NVreg_RestrictProfilingToAdminUsers=0" in refused.advice) == ("limited", True)
    assert permission_check("ncu", "RmProfilingAdminOnly: 0\n", is_administrator=False).verdict == "ok"
    assert permission_check("ncu", "RmProfilingAdminOnly: 1\n", is_administrator=True).verdict == "ok"
    monkeypatch.setenv("PATH", "/nonexistent")
    assert profiling_check(H200).found == "not on the PATH"
