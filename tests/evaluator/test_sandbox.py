"""What code in a worker can reach: in the sandbox where this machine allows one, and said plainly where it does not."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import cutesmith
from cutesmith_evaluator.client import Worker, WorkerDied
from cutesmith_evaluator.processes import descendants
from cutesmith_evaluator.sandbox import Sandbox, sandbox
from cutesmith_evaluator.types import Task

PROBE = """
import json, os, socket, tempfile
from pathlib import Path
import torch
from torch import nn


def tried(action):
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "done"


def probe():
    here = Path(__file__).with_name("trace")
    home = Path.home() / ".cutesmith-trace"
    return {
        "beside": tried(here.touch),
        "home": tried(home.touch),
        "temporary": tried(lambda: tempfile.TemporaryFile().close()),
        "scratch": tried((Path(os.environ["CUTESMITH_SCRATCH"]) / "mine").touch),
        "network": tried(lambda: socket.create_connection(("127.0.0.1", PORT), timeout=2).close()),
        "client": tried(lambda: os.kill(CLIENT, 0)),
        "shared": tried(lambda: Path("/dev/shm/cutesmith-trace").touch()),
    }


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        raise ValueError(json.dumps(probe()))


def get_inputs():
    return [torch.ones(2)]
"""
FREE = {"beside", "home", "temporary", "scratch", "network", "client", "shared"}


@pytest.fixture
def port() -> Iterator[int]:
    """Something on this machine that listens."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def reached(folder: Path, port: int) -> set[str]:
    """What a module in a worker can do."""
    file = folder / "model.py"
    file.write_text(PROBE.replace("PORT", str(port)).replace("CLIENT", str(os.getpid())))
    with Worker(Path(sys.executable)) as worker:
        (finding,) = worker.inspect(Task(str(file), "Model")).findings
    answers = json.loads(finding.message[finding.message.index("{") : finding.message.rindex("}") + 1])
    return {name for name, answer in answers.items() if answer == "done"}


def test_a_worker_reaches_its_scratch_folder_and_nothing_else(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    found = reached(tmp_path, port)
    if sandbox().is_on:
        inside = {"temporary", "scratch", "shared"} | (set() if sandbox().has_processes else {"client"})
        assert found == inside
        assert not (tmp_path / "trace").exists()
        assert not Path("/dev/shm/cutesmith-trace").exists()
    else:
        assert found == FREE


def test_the_setting_takes_the_sandbox_away(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sandbox() == Sandbox("", (), "CUTESMITH_SANDBOX=0")
    assert reached(tmp_path, port) == FREE
    Path("/dev/shm/cutesmith-trace").unlink()


def test_doctor_says_how_workers_are_confined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def check() -> dict[str, str]:
        ended = cutesmith("doctor", "--json", cwd=tmp_path)
        return next(each for each in ended.json["checks"] if each["name"] == "bubblewrap")

    assert check()["verdict"] == ("ok" if sandbox().is_on else "limited")
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")
    assert check()["verdict"] == "limited"
    assert "without a sandbox" in check()["advice"]


def test_a_sandbox_that_is_not_there_is_no_hindrance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A program of that name which always fails, as where user namespaces are forbidden."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ended = cutesmith("doctor", "--json", cwd=tmp_path)
    checks = {each["name"]: each for each in ended.json["checks"]}
    assert checks["bubblewrap"]["found"] == f"{tmp_path}/bwrap is not allowed to work here"
    assert checks["interpreter"]["verdict"] == "ok"


def test_a_worker_that_is_killed_leaves_nothing(tmp_path: Path):
    with Worker(Path(sys.executable)) as worker:
        worker.hello()
        assert worker._process is not None
        processes = [worker._process.pid, *descendants(worker._process.pid)]
        model = tmp_path / "a.py"
        model.write_text("import time\nfrom torch import nn\ntime.sleep(600)\nclass A(nn.Module): pass\n")
        threading.Timer(0.5, os.kill, (processes[-1], signal.SIGSEGV)).start()
        with pytest.raises(WorkerDied, match="SIGSEGV"):
            worker.inspect(Task(str(model), "A"))
        end = time.monotonic() + 10
        while any(Path(f"/proc/{pid}/exe").exists() for pid in processes) and time.monotonic() < end:
            time.sleep(0.02)
        assert not any(Path(f"/proc/{pid}/exe").exists() for pid in processes)
        assert worker.hello().torch
