"""Nasty files, environments and clients end in one sentence, with nothing left running."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from command_line import cutesmith
from cutesmith_agent.job import JobError, read_job
from cutesmith_agent.source.fingerprint import class_hash
from raw_server import INITIALIZE, OURS, Server, message

MODULE = """\
import os
import subprocess

import torch
from torch import nn

{top}


class A(nn.Module):
    def forward(self, x):
        {forward}


def get_inputs():
    return [torch.randn(64, 96)]
"""
MODEL_NEW = """\
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack
from torch import nn


@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    y[tidx] = x[tidx]


@cute.jit
def copy(x: cute.Tensor, y: cute.Tensor):
    copy_kernel(x, y).launch(grid=[1, 1, 1], block=[4, 1, 1])


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tensors = from_dlpack(x), from_dlpack(y)
        cute.compile(copy, *tensors)(*tensors)
        return y
"""
JOB = ("--device", "none", "--arch", "sm_90a", "--json")


def module(top: str = "", forward: str = "return torch.relu(x)") -> str:
    return MODULE.format(top=top, forward=forward)


@pytest.fixture(autouse=True)
def _state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project" / "a.py"


@pytest.mark.parametrize("arch", ["sm_banana", "", "sm_20"])
def test_an_unknown_arch_ends_at_once_with_those_that_are_known(file, arch):
    file.write_text(module())
    ended = cutesmith("optimize", file, "--arch", arch, "--device", "none")
    assert ended.status == 2
    assert f"invalid choice: '{arch}'" in ended.stderr
    assert "sm_90a" in ended.stderr
    assert not file.with_name(".cutesmith").exists()


def test_a_job_for_an_unknown_arch_is_refused():
    task = {"file": "/a.py", "qualname": "A"}
    job = {"kind": "optimize", "task": task, "workspace": "/", "interpreter": "python", "archs": ["sm_20"]}
    with pytest.raises(JobError, match=r"'sm_20' is no arch .*sm_80, .*sm_90a"):
        read_job(json.dumps(job).encode())


def test_a_kernel_that_could_not_be_compiled_here_is_not_said_to_compile(file):
    file.write_text(module())
    kernel = file.with_name("mine.py")
    kernel.write_text(MODEL_NEW)
    ended = cutesmith("check", file, kernel, *JOB)
    assert ended.status == 4
    assert ended.json["stopped"].startswith("mine.py was neither compiled nor validated")


@pytest.mark.parametrize("codec", ["rot13", "base64", "undefined"])
def test_a_coding_comment_that_names_no_text_encoding_is_said(file, codec):
    file.write_text(f"# coding: {codec}\n{module()}")
    ended = cutesmith("optimize", file, *JOB)
    assert ended.status == 2
    assert f"{codec} is no encoding of text files" in ended.stderr


def test_a_pipe_is_not_waited_for(file):
    os.mkfifo(file)
    ended = cutesmith("optimize", file, *JOB)
    assert ended.status == 2
    assert "no regular file" in ended.stderr


def test_a_file_name_that_is_not_utf_8_is_refused(file):
    odd = file.with_name(os.fsdecode(b"caf\xe9.py"))
    odd.write_text(module())
    ended = cutesmith("optimize", odd, *JOB)
    assert ended.status == 2
    assert "rename it" in ended.stderr


def test_text_that_the_terminal_cannot_show_is_escaped(file, monkeypatch):
    file.write_text(module(forward=r'raise ValueError("\ud800 \u4e2d")'))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ended = cutesmith("optimize", file, *JOB)
    assert ended.status == 2
    assert "ValueError: \\ud800 \u4e2d" in ended.json["stopped"]


def test_a_class_that_uses_a_very_long_sum_has_a_hash():
    long = module(top="S = " + " + ".join(["1"] * 5000), forward="return x * S")
    assert class_hash(long, "A") != class_hash(long.replace("1 + 1", "1 + 2", 1), "A")


def test_code_that_writes_into_the_workers_channel_is_named(file):
    file.write_text(module(top="for each in range(3, 30):\n    try: os.write(each, b'7\\n')\n    except OSError: pass"))
    ended = cutesmith("optimize", file, *JOB)
    assert ended.status == 2
    assert "wrote into its channel to CuteSmith" in ended.json["stopped"]


@pytest.mark.parametrize("end", ["os._exit(3)", "raise OSError"])
def test_processes_that_user_code_detached_are_ended(file, end, monkeypatch):
    monkeypatch.setenv(
        "CUTESMITH_SANDBOX", "0"
    )  # in it nothing can be written beside the file, and no process outlives it
    detach = 'subprocess.run(["bash", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo $! > pid"], cwd=folder)'
    file.write_text(module(top=f"folder = os.path.dirname(__file__)\n{detach}\n{end}"))
    assert cutesmith("optimize", file, *JOB).status == 2
    pid = int(file.with_name("pid").read_text())
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    assert state[:1] in ("", "Z")


def test_a_project_that_cannot_hold_a_store_keeps_what_was_made_for_it(file):
    file.write_text(module())
    file.with_name(".cutesmith").write_text("a file where the folder should be")
    assert cutesmith("optimize", file, *JOB).status == 4
    assert cutesmith("accept", file, "--yes").status == 0


def test_a_store_that_another_program_holds_is_said(file):
    file.write_text(module(forward="raise OSError"))
    assert cutesmith("optimize", file, *JOB).status == 2
    holder = sqlite3.connect(file.parent / ".cutesmith" / "store.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    ended = cutesmith("optimize", file, *JOB)
    holder.close()
    assert ended.status == 2
    assert "database is locked" in ended.json["stopped"]


def test_a_script_without_a_suffix_can_be_inspected(file):
    script = file.with_name("script")
    script.write_text(module(forward="raise OSError('reached')"))
    ended = cutesmith("optimize", script, *JOB)
    assert "reached" in ended.json["stopped"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/hover", {"textDocument": {"uri": "file:///a.py"}, "position": {"line": -1, "character": 0}}),
        ("workspace/executeCommand", 7),
        ("textDocument/codeLens", None),
    ],
)
def test_a_request_that_cannot_be_read_is_answered(tmp_path, method, params):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message(method, params, 2))
        assert server.reply(2)["error"]["code"] == -32602


@pytest.mark.parametrize("uri", ["http://[bad", "file:///%00.py"])
def test_a_uri_that_names_nothing_is_no_file(tmp_path, uri):
    with Server(OURS, tmp_path) as server:
        argument = {"uri": uri, "class": "A"}
        server.send(INITIALIZE)
        server.send(message("workspace/executeCommand", {"command": "cutesmith.generate", "arguments": [argument]}, 2))
        assert server.answer(2) is None
        assert "is no file on disk" in json.dumps(server.told[-1])


def test_nesting_deeper_than_python_reads_hides_no_other_class(tmp_path):
    text = module() + "".join(" " * depth + "if x:\n" for depth in range(3000))
    item = {"uri": "file:///project/a.py", "languageId": "python", "version": 1, "text": text}
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message("textDocument/didOpen", {"textDocument": item}))
        server.send(message("textDocument/codeLens", {"textDocument": {"uri": item["uri"]}}, 2))
        assert len(server.answer(2)) == 1


def test_a_shutdown_while_a_question_is_open_is_answered(file):
    file.write_text(module())
    argument = {"uri": file.as_uri(), "class": "A"}
    capabilities = {"window": {"showMessage": {"messageActionItem": {}}}}
    begin = {"processId": None, "rootUri": file.parent.as_uri(), "capabilities": capabilities}
    item = {"uri": argument["uri"], "languageId": "python", "version": 1, "text": module()}
    with Server(OURS, file.parent) as server:
        server.send(message("initialize", begin, 1) + message("textDocument/didOpen", {"textDocument": item}))
        server.send(message("workspace/executeCommand", {"command": "cutesmith.generate", "arguments": [argument]}, 2))
        server.answer(1)
        while "window/showMessageRequest" not in [each["method"] for each in server.told]:
            server.send(message("cutesmith/jobs", {}, 3))
            server.answer(3)
        server.send(message("shutdown", None, 4))
        assert server.answer(4) is None
        server.send(message("exit", None))
        assert server.process.wait(10) == 0
