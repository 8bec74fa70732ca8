"""Jobs and decisions under an editor that does too much at a time: the server goes on answering, and loses nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raw_server import OURS, Server, message

CLASS = "class C{n}(nn.Module):\n    def forward(self, x):\n        return x * {n}\n\n\n"
COMMAND = "workspace/executeCommand"
MANY = 60


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of many modules, in a project whose Python never comes up."""
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # a shell script is no Python to keep in one
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "python").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "python").chmod(0o755)
    text = "from torch import nn\n\n\n" + "".join(CLASS.format(n=n) for n in range(MANY))
    (tmp_path / "many.py").write_text(text)
    return tmp_path / "many.py"


@pytest.fixture
def server(project: Path) -> Iterator[Server]:
    root, options = project.parent, {"trusted": True, "device": "none", "interpreter": str(project.parent / "python")}
    capabilities = {"window": {"workDoneProgress": True}}
    asked = {
        "processId": None,
        "rootUri": root.as_uri(),
        "capabilities": capabilities,
        "initializationOptions": options,
    }
    item = {"uri": project.as_uri(), "languageId": "python", "version": 1, "text": project.read_text()}
    with Server(OURS, root) as started:
        started.send(message("initialize", asked, 1) + message("initialized", {}))
        started.send(message("textDocument/didOpen", {"textDocument": item}) + lens(project, 2))
        started.answer(2)
        yield started
        started.send(message("shutdown", None, 9000))
        started.reply(9000)


def lens(path: Path, number: int) -> bytes:
    return message("textDocument/codeLens", {"textDocument": {"uri": path.as_uri()}}, number)


def run(command: str, path: Path, name: str, number: int) -> bytes:
    return message(
        COMMAND, {"command": f"cutesmith.{command}", "arguments": [{"uri": path.as_uri(), "class": name}]}, number
    )


def test_a_burst_of_commands_neither_starts_a_job_twice_nor_holds_up_the_rest(project, server):
    """What a command costs does not grow with the jobs that there are."""
    started = time.perf_counter()
    for number in range(MANY):
        server.send(run("generate", project, f"C{number}", 100 + number))
    server.send(lens(project, 50) + run("generate", project, "C0", 51))
    titles = [each["command"]["title"] for each in server.answer(50)]
    took = time.perf_counter() - started
    assert titles.count("Cancel") == MANY
    print(f"{MANY} jobs begun and the lenses told in {took:.2f} s")
    assert took < 6
    assert server.answer(51) is None
    said = [each["params"]["message"] for each in server.told if each.get("method") == "window/showMessage"]
    assert said == ["A kernel for C0 is being made already: wait for it or cancel it."]
    server.send(message("cutesmith/jobs", {}, 52))
    assert [each["state"] for each in server.answer(52)["jobs"]] == ["running"] * MANY


def test_every_bar_ends_though_the_editor_was_slow_to_get_ready_for_it(project, server):
    """Two jobs on a class one after the other, and the editor answers for both bars when the second runs."""
    server.send(run("generate", project, "C1", 60))
    first = question(server, "window/workDoneProgress/create")
    server.send(run("cancel", project, "C1", 61))
    server.answer(61)
    until_idle(server, 62)
    server.send(run("generate", project, "C1", 80))
    second = question(server, "window/workDoneProgress/create")
    for asked in (first, second):
        server.send(answer(asked["id"]))
    server.answer(80)
    server.send(run("cancel", project, "C1", 81))
    server.answer(81)
    until_idle(server, 82)
    bars = [each["params"] for each in server.told if each.get("method") == "$/progress"]
    begun = {each["token"] for each in bars if each["value"]["kind"] == "begin"}
    ended = {each["token"] for each in bars if each["value"]["kind"] == "end"}
    assert begun
    assert begun == ended


def question(server: Server, method: str) -> dict:
    """The next request of the server by a method that was not taken before."""
    while True:
        found = server.read()
        server.told.append(found)
        if found.get("method") == method:
            return found


def answer(number: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": number, "result": None}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def until_idle(server: Server, number: int) -> None:
    for each in range(number, number + 15):
        server.send(message("cutesmith/jobs", {}, each))
        if not any(job["state"] == "running" for job in server.answer(each)["jobs"]):
            return
        time.sleep(0.2)
    raise AssertionError("the job did not end")


def test_an_answer_that_comes_while_the_server_shuts_down_is_no_fault(project, server):
    server.send(run("generate", project, "C2", 60))
    asked = question(server, "window/workDoneProgress/create")
    server.send(message("shutdown", None, 61) + answer(asked["id"]))
    server.answer(61)
    said = [each["params"]["message"] for each in server.told if each.get("method") == "window/showMessage"]
    assert said == []


@pytest.mark.parametrize("command", ["allowLowered", "watch"])
def test_a_class_that_is_not_there_leaves_no_trace(project, server, command):
    before = sorted(each.name for each in project.parent.rglob("*"))
    server.send(run(command, project, "Nobody", 70))
    assert server.answer(70) is None
    assert "Nobody" in server.told[-1]["params"]["message"]
    assert sorted(each.name for each in project.parent.rglob("*")) == before
    assert (project.parent / "pyproject.toml").read_text() == ""
