"""The server is up before anyone notices: `initialize` against a bare pygls server, what it imports, how big it is."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from large_files import text_of
from raw_server import INITIALIZE, OURS, Server, message

BARE = """\
from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("bare", "1")


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def did_open(params):
    pass


server.start_io()
"""
ROUNDS = 9
UNWANTED = (
    "torch",
    "anthropic",
    "numpy",
    "cutlass",
    "tvm_ffi",
    "cutesmith_agent.recipes",
    "cutesmith_evaluator.worker",
)

# The real server in this process, asked by its own code, after a file was opened, what it has imported by then.
REPORT_IMPORTS = """\
import json, sys
from cutesmith_server.app import create_server
server = create_server()
@server.feature("test/modules")
def modules(params):
    return {"modules": sorted(sys.modules)}
server.start_io()
"""


def seconds_to_initialize(command: Sequence[str], folder: Path) -> float:
    started = time.perf_counter()
    with Server(command, folder) as server:
        server.send(INITIALIZE)
        server.answer(1)
        return time.perf_counter() - started


@pytest.fixture
def opened(tmp_path: Path) -> bytes:
    """The messages that open a file with a module."""
    path = tmp_path / "module.py"
    path.write_text("from torch import nn\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x\n")
    item = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text()}
    lenses = message("textDocument/codeLens", {"textDocument": {"uri": path.as_uri()}}, 2)
    return message("initialized", {}) + message("textDocument/didOpen", {"textDocument": item}) + lenses


def test_initialize_is_answered_within_1_4_times_a_bare_server(tmp_path):
    (tmp_path / "bare.py").write_text(BARE)
    bare = [sys.executable, str(tmp_path / "bare.py")]
    pairs = [(seconds_to_initialize(bare, tmp_path), seconds_to_initialize(OURS, tmp_path)) for _ in range(ROUNDS)]
    ratio = statistics.median(ours / theirs for theirs, ours in pairs)
    theirs, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"initialize: bare {theirs * 1e3:.0f} ms, CuteSmith {ours * 1e3:.0f} ms, median ratio {ratio:.2f}")
    assert ratio <= 1.4


def test_a_server_with_a_file_open_has_imported_nothing_heavy(tmp_path, opened):
    with Server([sys.executable, "-c", REPORT_IMPORTS], tmp_path) as server:
        server.send(INITIALIZE)
        server.answer(1)
        server.send(opened)
        assert server.answer(2)[0]["command"]["title"] == "Generate CuTe kernel"
        server.send(message("test/modules", {}, 3))
        imported = server.answer(3)["modules"]
    assert "tree_sitter" in imported
    assert [name for name in imported if name.startswith(UNWANTED)] == []


def test_a_server_with_a_large_file_open_is_small(tmp_path, opened):
    item = {"uri": "file:///large.py", "languageId": "python", "version": 1, "text": text_of(20_000)}
    lenses = message("textDocument/codeLens", {"textDocument": {"uri": item["uri"]}}, 3)
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE)
        server.answer(1)
        server.send(opened + message("textDocument/didOpen", {"textDocument": item}) + lenses)
        server.answer(2)
        assert len(server.answer(3)) == 40
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    (resident,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    print(f"resident: {resident / 1024:.0f} MB")
    assert resident / 1024 < 70  # jobs' reports take some more


@pytest.mark.parametrize("command", [["optimize", "nowhere.py"], ["status"]])
def test_the_command_line_imports_no_language_server(tmp_path, command):
    code = (
        "import sys; from cutesmith_server.__main__ import main; main(sys.argv[1:]);"
        f"print([name for name in sys.modules if name.startswith(('pygls', 'lsprotocol', *{UNWANTED!r}))])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[-1] == "[]"
