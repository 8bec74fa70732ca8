"""What users complained of in other assistants and servers, as far as bytes on the wire show it (docs/editors.md)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from raw_server import INITIALIZE, OURS, Server, message

TEXT = "from torch import nn\n\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x\n"
URI = "file:///project/a.py"
LENS = "textDocument/codeLens"
DOCUMENT = {"textDocument": {"uri": URI}}


def opening(uri: str = URI, text: str = TEXT, language: str = "python") -> bytes:
    item = {"uri": uri, "languageId": language, "version": 1, "text": text}
    return message("textDocument/didOpen", {"textDocument": item})


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_diagnostics_are_pushed_so_a_cancelled_pull_cannot_blank_them(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE)
        assert "diagnosticProvider" not in server.answer(1)["capabilities"]


def test_every_lens_carries_its_command(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + opening() + message(LENS, DOCUMENT, 2))
        capabilities = server.answer(1)["capabilities"]
        assert not capabilities["codeLensProvider"]["resolveProvider"]
        lenses = server.answer(2)
        assert lenses
        assert {each["command"]["command"] for each in lenses} <= set(
            capabilities["executeCommandProvider"]["commands"]
        )


def test_a_request_is_answered_for_the_text_that_was_sent_before_it(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + opening())
        for version in range(2, 30):
            text = TEXT + TEXT.partition("\n\n\n")[2].replace("A(", f"B{version}(") * 1
            change = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": text}]}
            server.send(message("textDocument/didChange", change) + message(LENS, DOCUMENT, version))
        for version in range(2, 30):
            names = [each["command"]["arguments"][0]["class"] for each in server.answer(version)]
            assert names == ["A", f"B{version}"]


def test_a_cancelled_request_is_still_answered_and_the_server_goes_on(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + opening())
        for number in range(2, 40):
            server.send(message(LENS, DOCUMENT, number) + message("$/cancelRequest", {"id": number}))
        for number in range(2, 40):
            reply = server.reply(number)
            assert "result" in reply or reply["error"]["code"] == -32800
        server.send(message(LENS, DOCUMENT, 50))
        assert len(server.answer(50)) == 1


def test_a_request_after_shutdown_is_answered_at_once(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + opening() + message("shutdown", None, 2))
        assert server.answer(2) is None
        server.send(message(LENS, DOCUMENT, 3))
        assert {"result", "error"} & server.reply(3).keys()
        server.send(message("exit", None))
        assert server.process.wait(10) == 0


def test_an_idle_server_uses_no_cpu(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message("initialized", {}) + opening() + message(LENS, DOCUMENT, 2))
        server.answer(2)
        time.sleep(1.0)  # what was put off is done
        before, seconds = cpu_s(server.process.pid), 2.0
        time.sleep(seconds)
        assert cpu_s(server.process.pid) - before <= 0.01


def test_nothing_of_a_large_workspace_is_read_until_it_is_opened(tmp_path):
    """A read of a pipe that nobody writes to never ends: had one been read, the server would not answer."""
    for number in range(2000):
        (tmp_path / f"module_{number}.py").write_text(TEXT)
    for name in ("trap.py", "a_cute.py", "model_cute.py"):
        os.mkfifo(tmp_path / name)
    uri = (tmp_path / "module_0.py").as_uri()
    root = {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}
    started = time.perf_counter()
    with Server(OURS, tmp_path) as server:
        server.send(message("initialize", root, 1) + message("initialized", {}) + opening(uri))
        server.send(message(LENS, {"textDocument": {"uri": uri}}, 2))
        assert len(server.answer(2)) == 1
        kernel = (tmp_path / "new_cute.py").as_uri()
        here = {"line": 0, "character": 0}
        where = {"textDocument": {"uri": kernel}, "range": {"start": here, "end": here}, "context": {"diagnostics": []}}
        server.send(opening(kernel, "import torch\n") + message("textDocument/codeAction", where, 3))
        assert server.answer(3) == []
    assert time.perf_counter() - started < 20


def test_a_notebook_and_an_untitled_buffer_are_left_alone_in_a_sentence(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE)
        for number, uri in enumerate(("untitled:Untitled-1", "vscode-notebook-cell:/project/a.ipynb#W0"), 2):
            server.send(opening(uri) + message(LENS, {"textDocument": {"uri": uri}}, number * 10))
            assert server.answer(number * 10) == []
            argument = {"command": "cutesmith.generate", "arguments": [{"uri": uri, "class": "A"}]}
            server.send(message("workspace/executeCommand", argument, number * 10 + 1))
            assert server.answer(number * 10 + 1) is None
            assert "save it first" in server.told[-1]["params"]["message"]


def test_comments_start_nothing(tmp_path):
    text = TEXT.replace("        return", "        # cutesmith: generate! AI! ai? @cutesmith\n        return")
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message("initialized", {}) + opening(text=text))
        server.send(message("textDocument/didSave", DOCUMENT) + message("cutesmith/jobs", {}, 2))
        assert server.answer(2) == {"jobs": []}


def test_typing_shows_no_progress_and_says_nothing(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message("initialized", {}) + opening())
        server.answer(1)
        place = {"start": {"line": 5, "character": 8}, "end": {"line": 5, "character": 8}}
        for version in range(2, 60):
            changes = [{"range": place, "text": "x"}]
            change = {"textDocument": {"uri": URI, "version": version}, "contentChanges": changes}
            server.send(message("textDocument/didChange", change))
        time.sleep(0.5)
        server.send(message(LENS, DOCUMENT, 2))
        server.answer(2)
        assert [each["method"] for each in server.told if each.get("method") != "client/registerCapability"] == []
